package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// made runs a command line that creates files, and returns its output.
func made(t *testing.T, line string) string {
	t.Helper()
	var out bytes.Buffer
	if err := runCommand(t.Context(), strings.Fields(line), &out, io.Discard); err != nil {
		t.Fatalf("rdmactor %s: %v", line, err)
	}
	return out.String()
}

func TestKeygen(t *testing.T) {
	t.Chdir(t.TempDir())
	if said := made(t, "keygen ann"); said != "ann.key has a new key of ann\n" {
		t.Errorf("it says %q", said)
	}
	info, err := os.Stat("ann.key")
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	first, err := keyfile.Load("ann.key")
	if err != nil || len(first) != 1 || first[0].Identity != "ann" {
		t.Fatalf("it has %v, %v", first, err)
	}

	// a second run fails and leaves the file unchanged
	if err := runCommand(t.Context(), []string{"keygen", "ann"}, io.Discard, io.Discard); !errors.Is(err, fs.ErrExist) ||
		!strings.Contains(err.Error(), "append a key to it with --add, or write to another file with -o") {
		t.Errorf("a file that is there: %v", err)
	}
	if now, err := keyfile.Load("ann.key"); err != nil || now[0] != first[0] {
		t.Errorf("then it has %v, %v", now, err)
	}

	made(t, "keygen ann --add -o ann.key")
	two, err := keyfile.Load("ann.key")
	if err != nil || len(two) != 2 || two[0] != first[0] || two[1].Identity != "ann" || two[1].Key == first[0].Key {
		t.Errorf("with a second key: %v, %v", two, err)
	}
	if err := runCommand(t.Context(), strings.Fields("keygen ann --add"), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "more than 2 keys") {
		t.Errorf("a third key: %v", err)
	}
	if err := runCommand(t.Context(), strings.Fields("keygen bob --add -o bob.key"), io.Discard, io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("to a file that is not there: %v", err)
	}
}

// TestKeygenPrints: a key is printed only on request.
func TestKeygenPrints(t *testing.T) {
	t.Chdir(t.TempDir())
	list, err := keyfile.Read(strings.NewReader(made(t, "keygen -o - 10.0.0.1:7471")))
	if err != nil || len(list) != 1 || list[0].Identity != "10.0.0.1:7471" {
		t.Errorf("what is printed reads as %v, %v", list, err)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("there are files: %v, %v", files, err)
	}
	said := made(t, "keygen bob")
	text, err := os.ReadFile("bob.key")
	if err != nil {
		t.Fatal(err)
	}
	if _, key, _ := strings.Cut(strings.TrimSpace(string(text)), ":"); len(key) != 44 || strings.Contains(said, key) {
		t.Errorf("the key is in %q", said)
	}
}

// TestKeygenInPlaceOfAFile: where a folder or a link to nothing has the name, --add would fail, so
// the error does not propose it.
func TestKeygenInPlaceOfAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Mkdir("folder", 0o700), os.Symlink("nothing", "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"folder", "link"} {
		err := runCommand(t.Context(), []string{"keygen", "ann", "-o", name}, io.Discard, io.Discard)
		if !errors.Is(err, fs.ErrExist) || strings.Contains(err.Error(), "--add") || !strings.Contains(err.Error(), "-o FILE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
