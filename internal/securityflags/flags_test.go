package securityflags_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/securityflags"
	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
)

// parse reads a command line.
func parse(t *testing.T, line string) (f securityflags.Flags) {
	t.Helper()
	s := flag.NewFlagSet("test", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	f.Define(s)
	if err := s.Parse(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestModes(t *testing.T) {
	key := securitytest.KeyFile(t, securitytest.Key(t, "ann"))
	for line, want := range map[string]*rdma.Security{
		"":             nil,
		"--insecure":   {Mode: rdma.Insecure},
		"--key " + key: {Mode: rdma.PSK},
	} {
		f := parse(t, line)
		if err := f.Check(); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		s, closed, err := f.Open(func(line string) { t.Error(line) })
		switch {
		case err != nil || (s == nil) != (want == nil):
			t.Errorf("%q: %v, %v", line, s, err)
		case s != nil && (s.Mode != want.Mode || (s.Keys != nil) != (s.Mode == rdma.PSK)):
			t.Errorf("%q: %v", line, s)
		}
		closed()
	}
	f := parse(t, "--insecure --key "+key)
	if err := f.Check(); err == nil {
		t.Error("both")
	}
}

// TestOther: a program with these flags can connect to one with those.
func TestOther(t *testing.T) {
	for line, want := range map[string]string{
		"": "", "--insecure": " --insecure", "--key a": " --key FILE",
		"--tls-ca a --tls-cert b --tls-key c": " --tls-ca FILE --tls-cert FILE --tls-key FILE",
		"--tls-cert b --tls-key c":            " --tls-ca FILE",
	} {
		f := parse(t, line)
		if got := f.Other(); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	if err := securityflags.Explain(unix.EIO); err != unix.EIO { //nolint:errorlint // it is not wrapped
		t.Errorf("another error became %v", err)
	}
	if err := securityflags.Explain(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	err := securityflags.Explain(fmt.Errorf("listen: %w", rdma.ErrNoSecurity))
	if !errors.Is(err, rdma.ErrNoSecurity) || !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "--insecure") {
		t.Errorf("%v", err)
	}
}

func TestOpenFails(t *testing.T) {
	name := securitytest.KeyFile(t, securitytest.Key(t, "ann"))
	for why, c := range map[string]struct {
		change func() error
		want   error
	}{
		"others can read it": {func() error { return os.Chmod(name, 0o644) }, unix.EACCES},
		"a bad line":         {func() error { return errors.Join(os.Remove(name), os.WriteFile(name, []byte("x"), 0o600)) }, unix.EINVAL},
		"it is gone":         {func() error { return os.Remove(name) }, fs.ErrNotExist},
	} {
		name = securitytest.KeyFile(t, securitytest.Key(t, "ann"))
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		f := parse(t, "--key "+name)
		s, closed, err := f.Open(func(string) {})
		if closed(); !errors.Is(err, c.want) || s != nil || !strings.HasPrefix(err.Error(), "--key: ") {
			t.Errorf("%s: %v, %v", why, s, err)
		}
	}
}

// TestChangesAreUsed: the contents in use are those that were reported.
func TestChangesAreUsed(t *testing.T) {
	ann := securitytest.Key(t, "ann")
	name := securitytest.KeyFile(t, ann)
	notes := make(chan string, 8)
	f := parse(t, "--key "+name)
	_, closed, err := f.Open(func(line string) { notes <- line })
	if err != nil {
		t.Fatal(err)
	}
	defer closed()
	want := func(text string) {
		t.Helper()
		select {
		case line := <-notes:
			if !strings.Contains(line, text) {
				t.Errorf("it says %q, want %q", line, text)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("it never says %q", text)
		}
	}
	time.Sleep(50 * time.Millisecond) // the first read of the files
	securitytest.Replace(t, name, securitytest.Key(t, "bob"), ann)
	want("connecting with the key of bob; keys of peers: 2")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	want("the keys stay as they are")
	securitytest.Replace(t, name, ann)
	want("connecting with the key of ann; keys of peers: 1")
}
