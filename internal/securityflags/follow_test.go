package securityflags

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmactor/rdmactor/internal/securityflags/securitytest"
)

// A file that is being overwritten changes nothing until it is the same in two successive reads,
// even if the part written so far is a list of authorities.
func TestFollowWaitsForTheWholeFile(t *testing.T) {
	read := func() []byte {
		b, err := os.ReadFile(securitytest.NewCerts(t).Flags("")[1])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one, other := read(), read()
	a := &authorities{file: filepath.Join(t.TempDir(), "ca.pem")}
	f, notes := &followed{source: a}, 0
	look := func(why string, content []byte, want int) {
		t.Helper()
		if err := os.WriteFile(a.file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if f.look(func(string) { notes++ }); notes != want {
			t.Fatalf("%s: %d changes, want %d", why, notes, want)
		}
	}
	look("the beginning", one, 0)
	first := a.now.Load()
	look("half of two", other, 0)
	look("two", append(other, one...), 0)
	if !a.now.Load().Equal(first) {
		t.Error("what was being written is used")
	}
	look("two, and they stay", append(other, one...), 1)
	if a.now.Load().Equal(first) {
		t.Error("the change is not used")
	}
}

// A list of authorities that was cut off within one of them changes nothing: the ones before it are
// not the whole list.
func TestAuthoritiesCutOff(t *testing.T) {
	b, err := os.ReadFile(securitytest.NewCerts(t).Flags("")[1])
	if err != nil {
		t.Fatal(err)
	}
	a := &authorities{file: "ca.pem"}
	if err := a.load([][]byte{append(bytes.Clone(b), b...)}, nil); err != nil {
		t.Fatal(err)
	}
	two := a.now.Load()
	for n := 1; n < len(b); n++ {
		text := append(bytes.Clone(b), b[:n]...)
		err := a.load([][]byte{text}, nil)
		if begun := bytes.Count(text, []byte(beginCertificate)) > 1; begun && n < len(b)-1 && err == nil {
			t.Fatalf("cut off after %d of %d bytes, and used", n, len(b))
		}
		if err != nil && !a.now.Load().Equal(two) {
			t.Fatal("an error has changed the authorities")
		}
	}
}
