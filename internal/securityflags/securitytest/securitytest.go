// Package securitytest makes the files that the flags of package securityflags name, for tests.
package securitytest

import (
	"os"
	"path/filepath"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
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
