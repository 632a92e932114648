package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// leaf returns a certificate of a folder and checks its key.
func leaf(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// signed checks that the authority of a folder has signed c.
func signed(t *testing.T, dir string, c *x509.Certificate) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatalf("no authority: %v", err)
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("%v: %v", c.Subject, err)
	}
}

// files returns the names of a folder's files.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name(), "-key.pem") && info.Mode() != 0o600 {
			t.Errorf("the mode of %s is %v", f.Name(), info.Mode())
		}
		names = append(names, f.Name())
	}
	return names
}

func TestCerts(t *testing.T) {
	t.Chdir(t.TempDir())
	said := made(t, "certs")
	if strings.Count(said, "\n") != 3 || strings.Contains(said, "PRIVATE") {
		t.Errorf("it says %q", said)
	}
	want := []string{"ca-key.pem", "ca.pem", "client-key.pem", "client.pem", "server-key.pem", "server.pem"}
	if got := files(t, "certs"); !slices.Equal(got, want) {
		t.Errorf("it has made %v", got)
	}
	server := leaf(t, "certs", "server")
	signed(t, "certs", server)
	signed(t, "certs", leaf(t, "certs", "client"))
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		if err := server.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}

	// more of the same authority, without overwriting others
	made(t, "certs --client ann --client bob --client ann")
	signed(t, "certs", leaf(t, "certs", "ann"))
	signed(t, "certs", leaf(t, "certs", "bob"))
	before := files(t, "certs")
	for _, line := range []string{"certs host", "certs --client zoe --client ann"} {
		if err := runCommand(t.Context(), strings.Fields(line), io.Discard, io.Discard); !errors.Is(err, fs.ErrExist) {
			t.Errorf("rdmactor %s: %v", line, err)
		}
	}
	if after := files(t, "certs"); !slices.Equal(before, after) || !leaf(t, "certs", "server").Equal(server) {
		t.Errorf("then there are %v, and before %v", after, before)
	}
	if err := runCommand(t.Context(), []string{"certs"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "name the server or --client") {
		t.Errorf("again: %v", err)
	}
}

func TestCertsOfNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	made(t, "certs node1.lab 10.0.0.1 --dir "+dir+" --client ann fe80::1")
	c := leaf(t, dir, "server")
	for name, good := range map[string]bool{"node1.lab": true, "10.0.0.1": true, "fe80::1": true, "127.0.0.1": false, "localhost": false} {
		if err := c.VerifyHostname(name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "client.pem")); err == nil {
		t.Error("a client that nobody has named")
	}
}

// TestHalfAnAuthority: a folder with half an authority is left as it is.
func TestHalfAnAuthority(t *testing.T) {
	t.Chdir(t.TempDir())
	made(t, "certs")
	for _, missing := range []string{"ca-key.pem", "ca.pem"} {
		if err := os.Rename("certs/"+missing, "saved"); err != nil {
			t.Fatal(err)
		}
		before := files(t, "certs")
		if err := runCommand(t.Context(), strings.Fields("certs --client ann"), io.Discard, io.Discard); err == nil {
			t.Errorf("without %s it signs", missing)
		}
		if after := files(t, "certs"); !slices.Equal(before, after) {
			t.Errorf("without %s it has made %v of %v", missing, after, before)
		}
		if err := os.Rename("saved", "certs/"+missing); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertsWithoutAccess: a file that cannot be looked for is not reported as one that exists.
func TestCertsWithoutAccess(t *testing.T) {
	t.Chdir(t.TempDir())
	made(t, "certs")
	err := runCommand(t.Context(), []string{"certs", "--client", strings.Repeat("a", 250)}, io.Discard, io.Discard)
	if err == nil || errors.Is(err, fs.ErrExist) || !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("a name that is too long for a file: %v", err)
	}
}
