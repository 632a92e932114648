package securityflags

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// tls is Open for certificates.
func (f *Flags) tls(note func(string)) (*rdma.Security, func(), error) {
	s := &rdma.Security{Mode: rdma.TLS, TLS: &tls.Config{MinVersion: tls.VersionTLS13}}
	var all []*followed
	if f.CA != "" {
		a := &authorities{file: f.CA}
		if err := a.load(a.read()); err != nil {
			return nil, func() {}, fmt.Errorf("--tls-ca: %w", err)
		}
		s.TLS.ClientAuth, s.Authorities = tls.RequireAndVerifyClientCert, a.now.Load
		all = append(all, &followed{source: a})
	}
	if f.Cert != "" {
		p := &pair{cert: f.Cert, key: f.CertKey}
		if err := p.load(p.read()); err != nil {
			return nil, func() {}, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		s.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.now.Load(), nil }
		s.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.now.Load(), nil }
		all = append(all, &followed{source: p})
	}
	return s, background(func(ctx context.Context) { follow(ctx, all, note) }), nil
}

// source is a setting that is read from files.
type source interface {
	// read returns the contents of the files.
	read() ([][]byte, error)
	// load uses the contents from the next handshake on. After an error the previous ones stay in
	// use.
	load(texts [][]byte, err error) error
	// String returns the note about a change that load accepted.
	String() string
	// stays reports that nothing changes.
	stays() string
}

// authorities are those of the other side's certificate.
type authorities struct {
	file string
	now  atomic.Pointer[x509.CertPool]
}

func (a *authorities) read() ([][]byte, error) {
	text, err := readPEM(a.file)
	return [][]byte{text}, err
}

func (a *authorities) load(texts [][]byte, err error) error {
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(texts[0]) {
		return fmt.Errorf("%s has no certificates in PEM", a.file)
	}
	if !whole(texts[0]) {
		return fmt.Errorf("%s has a certificate that is cut off: write another file, and rename it", a.file)
	}
	a.now.Store(pool)
	return nil
}

func (a *authorities) stays() string { return "the authorities stay as they are" }

func (a *authorities) String() string {
	return a.file + " has changed: its authorities are those of later connections"
}

// pair is a certificate and its private key, in two files.
type pair struct {
	cert, key string
	now       atomic.Pointer[tls.Certificate]
}

func (p *pair) read() ([][]byte, error) {
	cert, err := readPEM(p.cert)
	if err != nil {
		return nil, err
	}
	key, err := readKey(p.key)
	return [][]byte{cert, key}, err
}

func (p *pair) load(texts [][]byte, err error) error {
	if err != nil {
		return err
	}
	c, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return fmt.Errorf("%s, %s: %w", p.cert, p.key, err)
	}
	p.now.Store(&c)
	return nil
}

func (p *pair) stays() string { return "the certificate stays as it is" }

func (p *pair) String() string {
	leaf := p.now.Load().Leaf
	return fmt.Sprintf("%s has changed: the certificate is that of %v, until %s", p.cert, leaf.Subject, leaf.NotAfter.Format(time.DateOnly))
}

// followed is a source whose files are read repeatedly. As with keyfile.Follow, a change counts
// when two looks in a row have seen the same.
type followed struct {
	source
	last, used seen
}

// seen is the result of reading the files: a sum of their bytes, or the error.
type seen struct {
	sum   [sha256.Size]byte
	error string
}

// follow keeps sources up to date with their files until ctx ends.
func follow(ctx context.Context, all []*followed, note func(string)) {
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		for _, f := range all {
			f.look(note)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// look uses the files if they have changed.
func (f *followed) look(note func(string)) {
	texts, err := f.read()
	defer func() {
		for _, b := range texts {
			clear(b)
		}
	}()
	now := seen{}
	if err != nil {
		now.error = err.Error()
	} else {
		h := sha256.New()
		for _, b := range texts {
			sum := sha256.Sum256(b)
			h.Write(sum[:])
		}
		h.Sum(now.sum[:0])
	}
	first, settled := f.last == seen{}, now == f.last
	f.last = now
	if first && err == nil && f.load(texts, nil) == nil {
		f.used = now // the contents read at the start, or a change since then
		return
	}
	if !settled || now == f.used {
		return
	}
	f.used = now
	if err = f.load(texts, err); err != nil {
		note(fmt.Sprintf("%s: %v", f.stays(), err))
	} else {
		note(f.String())
	}
}
