package planted

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/overlay"
)

// fault breaks one sentence of a man page.
type fault struct {
	name string // behaviour of the broken code; unique
	rows string // the broken sentences: "bind_addr-1 listen-8"
	file string
	old  string // text in file, once
	new  string
}

// faults are all faults.
var faults = slices.Concat(bindFaults, resolveFaults, listenFaults, lookupFaults, hintFaults, errorFaults, halfFaults)

// kernel reports whether the fault is in the driver of the kernel's devices, which needs them.
func (f *fault) kernel() bool { return strings.HasPrefix(f.file, "cmid/ucm/") }

// breaks returns the ids of the rows.
func (f *fault) breaks() []string { return strings.Fields(f.rows) }

// edit returns the fault as an overlay's edit.
func (f *fault) edit() overlay.Edit { return overlay.Edit{File: f.file, Old: f.old, New: f.new} }

// overlay writes a file for go build -overlay, and returns its name.
func (f *fault) overlay(t testing.TB) string {
	t.Helper()
	list, err := overlay.Write(root, t.TempDir(), f.edit())
	if err != nil {
		t.Fatal(err)
	}
	return list
}
