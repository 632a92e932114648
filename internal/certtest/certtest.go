// Package certtest makes certificates for tests: an authority, and certificates that it signs.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes one that is valid for an hour.
func New(tb testing.TB) *Authority {
	tb.Helper()
	key := newKey(tb)
	a := &Authority{key: key}
	a.Cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.Cert, a.Cert, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	if a.Cert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	return a
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// Pool has the authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

// Named returns a certificate for name, a DNS name and the subject's, that ends in so long.
func (a *Authority) Named(tb testing.TB, name string, valid time.Duration) tls.Certificate {
	tb.Helper()
	return a.Issue(tb, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}}, valid)
}

// Of returns a certificate for an identity, which is a URI, and for an address.
func (a *Authority) Of(tb testing.TB, uri, address string) tls.Certificate {
	tb.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		tb.Fatal(err)
	}
	return a.Issue(tb, &x509.Certificate{URIs: []*url.URL{u}, IPAddresses: []net.IP{net.ParseIP(address)}}, time.Hour)
}

// Issue signs a certificate for both sides of connections. c has the names.
func (a *Authority) Issue(tb testing.TB, c *x509.Certificate, valid time.Duration) tls.Certificate {
	tb.Helper()
	key := newKey(tb)
	c.SerialNumber = big.NewInt(2)
	c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(valid)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, c, a.Cert, key.Public(), a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
