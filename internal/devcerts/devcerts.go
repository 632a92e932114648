// Package devcerts makes certificates for development: an authority, and certificates that it
// signed. Their subjects state this purpose. None of them is for production: the authority's key is
// a file next to the others, and no certificate can be revoked.
package devcerts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// Organization is in the subject of each certificate.
	Organization = "rdmactor development, not for production"
	// lasts is how long certificates are valid.
	lasts = 365 * 24 * time.Hour
	// early is how far the clocks of other machines may be behind.
	early = time.Hour
)

// Pair is a certificate and its private key, both as PEM.
type Pair struct{ Cert, Key []byte }

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	Pair Pair
}

// New makes an authority.
func New() (*Authority, error) {
	a := new(Authority)
	template := newTemplate("rdmactor development CA")
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	var err error
	if a.key, a.Pair, err = signCert(template, nil); err != nil {
		return nil, err
	}
	a.cert, err = parseCert(a.Pair.Cert)
	return a, err
}

// Load reads an authority that New has made, as a Pair.
func Load(p Pair) (*Authority, error) {
	a := &Authority{Pair: p}
	var err error
	if a.cert, err = parseCert(p.Cert); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, errors.New("the authority's key is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	clear(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the authority's key: %w", err)
	}
	var ok bool
	if a.key, ok = key.(*ecdsa.PrivateKey); !ok || !a.key.PublicKey.Equal(a.cert.PublicKey) || !a.cert.IsCA {
		return nil, errors.New("the certificate and the key are not those of one authority that this has made")
	}
	if time.Now().After(a.cert.NotAfter) {
		return nil, fmt.Errorf("the authority's certificate has expired, on %s", a.cert.NotAfter.Format(time.DateOnly))
	}
	return a, nil
}

// Server makes a certificate of a server that is reached by names: host names and IP addresses. It
// is good for connecting, too, because a node of a cluster does both.
func (a *Authority) Server(names ...string) (Pair, error) {
	return a.issueLeaf(names, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// Client makes a certificate of a client, whose identity is name.
func (a *Authority) Client(name string) (Pair, error) {
	return a.issueLeaf([]string{name}, x509.ExtKeyUsageClientAuth)
}

func (a *Authority) issueLeaf(names []string, use ...x509.ExtKeyUsage) (Pair, error) {
	if len(names) == 0 {
		return Pair{}, errors.New("a certificate needs a name")
	}
	template := newTemplate(names[0])
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, use
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	_, p, err := signCert(template, a)
	return p, err
}

// newTemplate returns the common part of all certificates.
func newTemplate(name string) *x509.Certificate {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // never fails: it ends the program instead
	serial[0] &= 0x7f        // positive
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject:      pkix.Name{Organization: []string{Organization}, CommonName: name},
		NotBefore:    now.Add(-early), NotAfter: now.Add(lasts),
	}
}

// signCert makes a key, and a certificate of it. The authority nil signs itself.
func signCert(template *x509.Certificate, by *Authority) (*ecdsa.PrivateKey, Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, Pair{}, err
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, Pair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	defer clear(private)
	if err != nil {
		return nil, Pair{}, err
	}
	return key, Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

func parseCert(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the authority's certificate is no PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
