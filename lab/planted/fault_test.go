package planted

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/overlay"
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

// edit is the fault as an overlay has it.
func (f *fault) edit() overlay.Edit { return overlay.Edit{File: f.file, Old: f.old, New: f.new} }

// overlay writes what go build -overlay takes, and gives the file's name.
func (f *fault) overlay(t testing.TB) string {
	t.Helper()
	list, err := overlay.Write(root, t.TempDir(), f.edit())
	if err != nil {
		t.Fatal(err)
	}
	return list
}
