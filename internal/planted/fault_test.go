package planted

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fault is one sentence broken.
type fault struct {
	name string // what is done instead; of its own
	rows string // the sentences that it breaks: "bind_addr-1 listen-8"
	file string
	old  string // in file, once
	new  string
}

// faults are all there are.
var faults = slices.Concat(bindFaults, resolveFaults, listenFaults, lookupFaults, hintFaults, errorFaults, halfFaults)

// kernel reports whether the fault is in the driver of the kernel's devices, which needs them.
func (f *fault) kernel() bool { return strings.HasPrefix(f.file, "cmid/ucm/") }

// breaks gives the rows by id.
func (f *fault) breaks() []string { return strings.Fields(f.rows) }

// plant gives the file with the fault.
func (f *fault) plant(t testing.TB) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(root, f.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), f.old); n != 1 {
		t.Fatalf("%s has the text %d times, want once: give the fault the text as it is now\n%s", f.file, n, f.old)
	}
	return strings.Replace(string(src), f.old, f.new, 1)
}

// overlay writes what go build -overlay takes, and gives the file's name.
func (f *fault) overlay(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	planted, overlay := filepath.Join(dir, filepath.Base(f.file)), filepath.Join(dir, "overlay.json")
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(top, f.file): planted}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{planted: []byte(f.plant(t)), overlay: list} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}
