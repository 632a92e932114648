package securityflags

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// tls is Open for certificates.
func (f *Flags) tls(note func(string)) (*rdma.Security, func(), error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if f.CA != "" {
		text, err := readPEM(f.CA)
		if err != nil {
			return nil, func() {}, fmt.Errorf("--tls-ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, func() {}, fmt.Errorf("--tls-ca: %s has no certificates in PEM", f.CA)
		}
		c.RootCAs, c.ClientCAs, c.ClientAuth = pool, pool, tls.RequireAndVerifyClientCert
	}
	stop := func() {}
	if f.Cert != "" {
		p := &pair{cert: f.Cert, key: f.CertKey}
		if err := p.load(); err != nil {
			return nil, stop, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.now.Load(), nil }
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.now.Load(), nil }
		stop = background(func(ctx context.Context) { p.follow(ctx, note) })
	}
	return &rdma.Security{Mode: rdma.TLS, TLS: c}, stop, nil
}

// pair is a certificate and its private key, in two files.
type pair struct {
	cert, key string
	now       atomic.Pointer[tls.Certificate]

	seen  [2]fs.FileInfo // when it was loaded; nil: that has failed
	error string         // noted last
}

// load reads both files.
func (p *pair) load() error {
	seen, err := p.stat()
	p.seen = [2]fs.FileInfo{}
	if err != nil {
		return err
	}
	// often a group has the keys of certificates
	if m := seen[1].Mode(); m.IsRegular() && m.Perm()&0o007 != 0 {
		return &keyfile.ModeError{Name: p.key, Mode: m}
	}
	cert, err := readPEM(p.cert)
	if err != nil {
		return err
	}
	key, err := readPEM(p.key)
	defer clear(key)
	if err != nil {
		return err
	}
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", p.cert, p.key, err)
	}
	p.now.Store(&c)
	p.seen = seen
	return nil
}

func (p *pair) stat() (s [2]fs.FileInfo, err error) {
	for i, name := range []string{p.cert, p.key} {
		if s[i], err = os.Stat(name); err != nil {
			return s, err
		}
	}
	return s, nil
}

// follow has the pair be that of the files until ctx ends.
func (p *pair) follow(ctx context.Context, note func(string)) {
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			p.look(note)
		case <-ctx.Done():
			return
		}
	}
}

// look loads the pair again if its files have changed.
func (p *pair) look(note func(string)) {
	if now, err := p.stat(); err == nil && unchanged(p.seen[0], now[0]) && unchanged(p.seen[1], now[1]) {
		return
	}
	err := p.load()
	switch {
	case err == nil:
		p.error = ""
		note(fmt.Sprintf("%s has changed: the certificate is that of %v, until %s", p.cert, p.now.Load().Leaf.Subject, p.now.Load().Leaf.NotAfter.Format(time.DateOnly)))
	case p.error != err.Error():
		p.error = err.Error()
		note(fmt.Sprintf("the certificate stays as it is: %v", err))
	}
}

func unchanged(was, is fs.FileInfo) bool {
	return was != nil && os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()) && was.Size() == is.Size()
}
