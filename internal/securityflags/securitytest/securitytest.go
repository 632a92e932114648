// Package securitytest makes the files that the flags of package securityflags name, for tests.
package securitytest

import (
	"os"
	"path/filepath"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
	"github.com/rdmactor/rdmactor/internal/devcerts"
)

// Key makes a key of an identity.
func Key(t testing.TB, identity string) rdma.Credential {
	t.Helper()
	c, err := keyfile.Generate(identity)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// KeyFile makes a file of keys.
func KeyFile(t testing.TB, list ...rdma.Credential) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "a.key")
	if err := keyfile.Create(name, list...); err != nil {
		t.Fatal(err)
	}
	return name
}

// Replace puts other keys into a file.
func Replace(t testing.TB, name string, list ...rdma.Credential) {
	t.Helper()
	if err := os.Rename(KeyFile(t, list...), name); err != nil {
		t.Fatal(err)
	}
}

// Certs is a folder with certificates.
type Certs struct {
	t   testing.TB
	ca  *devcerts.Authority
	dir string
}

// NewCerts makes an authority, whose certificate is in a new folder.
func NewCerts(t testing.TB) *Certs {
	t.Helper()
	ca, err := devcerts.New()
	if err != nil {
		t.Fatal(err)
	}
	c := &Certs{t, ca, t.TempDir()}
	c.write("ca.pem", ca.Pair.Cert)
	return c
}

// Flags returns the flags of a program that has the certificate of file, and requires one of the
// authority from the other side.
func (c *Certs) Flags(file string) []string {
	return []string{
		"--tls-ca", filepath.Join(c.dir, "ca.pem"),
		"--tls-cert", filepath.Join(c.dir, file+".pem"), "--tls-key", filepath.Join(c.dir, file+"-key.pem"),
	}
}

// Server puts a certificate of a server on loopback into file, in place of an earlier one.
func (c *Certs) Server(file string) []string {
	c.t.Helper()
	return c.pair(file)(c.ca.Server("127.0.0.1", "localhost"))
}

// Client is Server for a client of a name.
func (c *Certs) Client(file, name string) []string {
	c.t.Helper()
	return c.pair(file)(c.ca.Client(name))
}

func (c *Certs) pair(file string) func(devcerts.Pair, error) []string {
	return func(p devcerts.Pair, err error) []string {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
		c.write(file+"-key.pem", p.Key)
		c.write(file+".pem", p.Cert)
		return c.Flags(file)
	}
}

func (c *Certs) write(name string, b []byte) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), b, 0o600); err != nil {
		c.t.Fatal(err)
	}
}
