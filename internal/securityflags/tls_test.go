package securityflags_test

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
	"github.com/rdmactor/rdmactor/internal/securityflags"
	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
)

// opened returns the Security of a command line, which is closed when the test ends.
func opened(t *testing.T, note func(string), args ...string) *rdma.Security {
	t.Helper()
	f := parse(t, strings.Join(args, " "))
	s, closed, err := f.Open(note)
	if err = errors.Join(err, f.Check()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closed)
	return s
}

func TestTLS(t *testing.T) {
	c := securitytest.NewCerts(t)
	quiet := func(line string) { t.Error(line) }
	both := opened(t, quiet, c.Server("server")...)
	if both.Mode != rdma.TLS || both.TLS.ClientAuth != tls.RequireAndVerifyClientCert || both.Authorities() == nil {
		t.Errorf("with everything: %+v", both)
	}
	cert, err := both.TLS.GetCertificate(nil)
	if own, err2 := both.TLS.GetClientCertificate(nil); err != nil || err2 != nil || own != cert || cert.Leaf.VerifyHostname("127.0.0.1") != nil {
		t.Errorf("the certificate is %v, %v, %v", cert, err, err2)
	}
	all := c.Flags("server")
	if s := opened(t, quiet, all[2:]...); s.TLS.ClientAuth != tls.NoClientCert || s.Authorities != nil {
		t.Errorf("without an authority: %+v", s.TLS)
	}
	if s := opened(t, quiet, all[:2]...); s.TLS.GetClientCertificate != nil || s.Authorities() == nil {
		t.Errorf("without a certificate: %+v", s.TLS)
	}
	for _, args := range [][]string{all[2:4], all[4:], append(slices.Clone(all), "--insecure"), {"--tls-ca", "x", "--key", "y"}} {
		f := parse(t, strings.Join(args, " "))
		if err := f.Check(); err == nil {
			t.Errorf("%q go together", args)
		}
	}
}

func TestTLSFails(t *testing.T) {
	for why, c := range map[string]struct {
		change func(c *securitytest.Certs, files []string) error
		is     error
		says   string
	}{
		"all can read the key": {func(_ *securitytest.Certs, files []string) error { return os.Chmod(files[5], 0o604) }, unix.EACCES, "chmod 600"},
		"no certificate":       {func(_ *securitytest.Certs, files []string) error { return os.Remove(files[3]) }, fs.ErrNotExist, "--tls-cert"},
		"no key":               {func(_ *securitytest.Certs, files []string) error { return os.Remove(files[5]) }, fs.ErrNotExist, "--tls-key"},
		"no authority":         {func(_ *securitytest.Certs, files []string) error { return os.Remove(files[1]) }, fs.ErrNotExist, "--tls-ca"},
		"another's key": {func(c *securitytest.Certs, files []string) error {
			return os.Rename(c.Client("other", "ann")[5], files[5])
		}, nil, "private key does not match"},
		"no PEM": {func(_ *securitytest.Certs, files []string) error { return os.WriteFile(files[1], []byte("x"), 0o600) }, nil, "no certificates in PEM"},
	} {
		certs := securitytest.NewCerts(t)
		files := certs.Server("server")
		if err := c.change(certs, files); err != nil {
			t.Fatal(err)
		}
		f := parse(t, strings.Join(files, " "))
		s, closed, err := f.Open(func(string) {})
		closed()
		if err == nil || s != nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want %q", why, s, err, c.says)
		}
	}
}

// TestCertificatesAreReplaced: the next handshake uses the files' new contents.
func TestCertificatesAreReplaced(t *testing.T) {
	c := securitytest.NewCerts(t)
	notes := make(chan string, 8)
	files := c.Client("ann", "old")
	s := opened(t, func(line string) { notes <- line }, files...)
	name := func() string {
		cert, err := s.TLS.GetClientCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return cert.Leaf.Subject.CommonName
	}
	next := func(text string) {
		t.Helper()
		for late := time.After(20 * time.Second); ; {
			select {
			case line := <-notes:
				if strings.Contains(line, text) {
					return
				}
			case <-late:
				t.Fatalf("it never says %q", text)
			}
		}
	}
	if err := os.WriteFile(files[5], []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if next("the certificate stays as it is"); name() != "old" {
		t.Errorf("with a bad key it is %s", name())
	}
	if time.Sleep(1500 * time.Millisecond); len(notes) > 0 {
		t.Errorf("that is said again: %q", <-notes)
	}
	c.Client("ann", "young")
	if next("has changed: the certificate is that of CN=young"); name() != "young" {
		t.Errorf("then it is %s", name())
	}
	time.Sleep(1500 * time.Millisecond)
	if len(notes) > 0 {
		t.Errorf("nothing has changed, and it says %q", <-notes)
	}
}

// TestAuthoritiesAreReplaced: a rotation has authorities as well as certificates. A file that has
// none changes nothing.
func TestAuthoritiesAreReplaced(t *testing.T) {
	c, other := securitytest.NewCerts(t), securitytest.NewCerts(t)
	notes := make(chan string, 8)
	files := c.Server("server")
	s := opened(t, func(line string) { notes <- line }, files...)
	said := func(text string) {
		t.Helper()
		select {
		case line := <-notes:
			if !strings.Contains(line, text) {
				t.Fatalf("it says %q, want %q", line, text)
			}
		case <-time.After(time.Minute):
			t.Fatalf("it never says %q", text)
		}
	}
	first := s.Authorities()
	if err := os.WriteFile(files[1], []byte("-----BEGIN CERTIF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said("the authorities stay as they are"); !s.Authorities().Equal(first) {
		t.Error("half a file is used")
	}
	b, err := os.ReadFile(other.Flags("")[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[1]+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(files[1]+".new", files[1]); err != nil {
		t.Fatal(err)
	}
	said("has changed")
	if now := s.Authorities(); now.Equal(first) {
		t.Error("the authorities are those of before")
	}
}

// Pipes, directories and devices are refused immediately, and so are endless files.
func TestPEMIsAFile(t *testing.T) {
	dir := t.TempDir()
	pipe, huge := filepath.Join(dir, "pipe"), filepath.Join(dir, "huge")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{pipe: keyfile.ErrNotRegular, dir: keyfile.ErrNotRegular, "/dev/zero": keyfile.ErrNotRegular, huge: unix.EFBIG} {
		for _, f := range []securityflags.Flags{{CA: name}, {Cert: name, CertKey: name}} {
			if _, _, err := f.Open(func(string) {}); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
	}
}
