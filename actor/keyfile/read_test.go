package keyfile_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// key returns a key whose bytes are all b, as it is written.
func key(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }

func credential(identity string, b byte) rdma.Credential {
	c := rdma.Credential{Identity: identity}
	copy(c.Key[:], bytes.Repeat([]byte{b}, 32))
	return c
}

func same(a, b []rdma.Credential) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestRead(t *testing.T) {
	text := "# peers\r\n\r\nann:" + key(1) + "\r\n  \n10.0.0.1:7471:" + key(2) + "\n\t ann smith:" + key(3) + " \nann:" + key(4)
	want := []rdma.Credential{credential("ann", 1), credential("10.0.0.1:7471", 2), credential("ann smith", 3), credential("ann", 4)}
	for name, r := range map[string]io.Reader{
		"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
	} {
		if got, err := keyfile.Read(r); err != nil || !same(got, want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
	if _, err := keyfile.Read(iotest.ErrReader(unix.EIO)); !errors.Is(err, unix.EIO) {
		t.Errorf("a disk that fails: %v", err)
	}
}

func TestReadWhatIsNoKey(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		says string
	}{
		"no colon":         {"ann:" + key(1) + "\n\nann\n", 3, "want IDENTITY:KEY"},
		"no identity":      {":" + key(1), 1, "an identity has 1 to 255 bytes"},
		"a long identity":  {strings.Repeat("x", 256) + ":" + key(1), 1, "an identity has 1 to 255 bytes"},
		"not printable":    {"a\x1bn:" + key(1), 1, "printable"},
		"no UTF-8":         {"a\xff:" + key(1), 1, "printable"},
		"a space":          {"ann :" + key(1), 1, "no spaces around it"},
		"no key":           {"ann:", 1, "44 characters"},
		"a short key":      {"ann:" + key(1)[:40], 1, "44 characters"},
		"31 bytes":         {"ann:" + base64.StdEncoding.EncodeToString(make([]byte, 31)), 1, "32 bytes"},
		"33 bytes":         {"ann:" + base64.StdEncoding.EncodeToString(make([]byte, 33)), 1, "32 bytes"},
		"hex":              {"ann:" + strings.Repeat("0", 64), 1, "44 characters"},
		"no base64":        {"ann:" + strings.Repeat("!", 43) + "=", 1, "in base64"},
		"bits of no byte":  {"ann:" + strings.Repeat("A", 42) + "B=", 1, "in base64"},
		"zeros":            {"ann:" + key(0), 1, "zeros"},
		"the same key":     {"ann:" + key(1) + "\nann:" + key(1), 2, "ann has this key already"},
		"three of a name":  {"ann:" + key(1) + "\nann:" + key(2) + "\nann:" + key(3), 3, "more than 2 keys"},
		"a line cut short": {"ann:" + key(1) + "\nbob:" + key(2)[:20], 2, "44 characters"},
	} {
		list, err := keyfile.Read(strings.NewReader(c.text))
		var wrong *keyfile.LineError
		if !errors.As(err, &wrong) || wrong.Line != c.line || !strings.Contains(wrong.What, c.says) || !errors.Is(err, unix.EINVAL) || list != nil {
			t.Errorf("%s: %v, %v; want line %d and %q", name, list, err, c.line, c.says)
		}
	}
	for _, text := range []string{"", "# nothing\n\n"} {
		if _, err := keyfile.Read(strings.NewReader(text)); !errors.Is(err, keyfile.ErrNoKeys) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestErrorsHaveNoKeys: whatever a line is, its error does not quote it.
func TestErrorsHaveNoKeys(t *testing.T) {
	for _, text := range []string{key(7), "ann " + key(7), "ann:" + key(7) + "x", key(7) + ":ann", "ann:" + key(7) + "\nann:" + key(7)} {
		if _, err := keyfile.Read(strings.NewReader(text)); err == nil || strings.Contains(err.Error(), "BwcH") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// endless is a file that goes on.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '\n'
	}
	e.read += len(b)
	return len(b), nil
}

func TestReadIsBounded(t *testing.T) {
	var e endless
	if _, err := keyfile.Read(&e); !errors.Is(err, keyfile.ErrTooLarge) || e.read > 9<<20 {
		t.Errorf("after %d bytes: %v", e.read, err)
	}
}

// kept is a reader that keeps the memory it was given.
type kept struct {
	io.Reader
	given [][]byte
}

func (k *kept) Read(b []byte) (int, error) {
	k.given = append(k.given, b)
	return k.Reader.Read(b)
}

// TestReadLeavesNoCopies: the bytes read are overwritten, valid or not.
func TestReadLeavesNoCopies(t *testing.T) {
	var good strings.Builder
	for i := range 100 {
		good.WriteString(strings.Repeat("x", i+1) + ":" + key(byte(i+1)) + "\n")
	}
	for name, text := range map[string]string{"good": good.String(), "bad": good.String() + "bob:" + key(1)[:9]} {
		k := &kept{Reader: strings.NewReader(text)}
		_, err := keyfile.Read(k)
		if (err == nil) != (name == "good") || len(k.given) < 3 {
			t.Errorf("%s: %v after %d reads", name, err, len(k.given))
		}
		for i, b := range k.given {
			if len(bytes.Trim(b, "\x00")) > 0 {
				t.Errorf("%s: what read %d has read is still there", name, i)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("ann:" + key(1) + "\n#\n\nbob:1:" + key(2) + "\r\n"))
	f.Add([]byte("ann:" + key(0)))
	f.Add([]byte(": :=\n::"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := keyfile.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		// the result can be written, read again, and used
		var out bytes.Buffer
		if err := keyfile.Write(&out, list...); err != nil {
			t.Fatal(err)
		}
		again, err := keyfile.Read(&out)
		if err != nil || !same(again, list) {
			t.Errorf("%v became %v, %v", list, again, err)
		}
		if err := keyfile.Use(new(rdma.Keyring), list); err != nil {
			t.Errorf("%v cannot be used: %v", list, err)
		}
	})
}
