package workload

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// certified is the authority and the certificates of machines in TLS mode.
//
// Random numbers of crypto/tls are real ones, and a trace must not depend on them. So no frame's
// length may vary: signatures are Ed25519, which have a fixed length, and the key exchange is
// X25519.
type certified struct {
	pool *x509.CertPool
	of   []tls.Certificate // per machine
}

// mostMachines is the maximum number of machines in a world.
const mostMachines = 8

// certificates are the same in all worlds.
var certificates = sync.OnceValue(func() *certified {
	c := &certified{pool: x509.NewCertPool()}
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := signingKey(0)
	c.pool.AddCert(signCert(authority, authority, key, key))
	for m := range mostMachines {
		id := &url.URL{Scheme: "spiffe", Host: "simulation", Path: fmt.Sprintf("/machine-%d", m+1)}
		own := signingKey(m + 1)
		x := signCert(&x509.Certificate{
			URIs: []*url.URL{id}, IPAddresses: []net.IP{net.ParseIP(machineAddr(m))},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, authority, own, key)
		c.of = append(c.of, tls.Certificate{Certificate: [][]byte{x.Raw}, PrivateKey: own, Leaf: x})
	}
	return c
})

// signingKey returns a key.
func signingKey(n int) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	oracle.Fill(seed, keys, uint64(2*mostMachines+n))
	return ed25519.NewKeyFromSeed(seed)
}

// signCert creates a certificate, which is valid for longer than any world lasts. Each world in TLS
// mode shows that it cannot fail.
func signCert(c, by *x509.Certificate, own, key ed25519.PrivateKey) *x509.Certificate {
	c.SerialNumber = big.NewInt(1)
	c.NotBefore, c.NotAfter = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	der, err := x509.CreateCertificate(nil, c, by, own.Public(), key)
	if err != nil {
		panic(err)
	}
	x, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return x
}

// newTLSConfig returns the configuration of a machine's connections: both sides have certificates.
func (c *certified) newTLSConfig(machine int) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{c.of[machine]}, RootCAs: c.pool,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.pool,
		CurvePreferences: []tls.CurveID{tls.X25519},
	}
}
