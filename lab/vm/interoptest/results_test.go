//go:build vm

package interoptest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/lab/vm"
)

var update = flag.Bool("update", false, "write the results to docs/interop.md")

const (
	document   = "../../../docs/interop.md"
	tableBegin = "<!-- results, written by go test -tags vm ./lab/vm/interoptest -update -->\n"
	tableEnd   = "<!-- end of results -->\n"
)

// results maps kernel and cell name to whether the cell has passed. It contains the cells that ran.
type results map[string]map[string]bool

func (r results) note(kernel string, c cell, ok bool) {
	if r[kernel] == nil {
		r[kernel] = make(map[string]bool)
	}
	r[kernel][c.String()] = ok
}

// complete reports whether every cell ran on every kernel.
func (r results) complete() bool {
	for _, kernel := range vm.Kernels {
		if len(r[kernel]) != len(cells()) {
			return false
		}
	}
	return true
}

// table returns the results as a table, with a line for each conversation and way.
func (r results) table() string {
	var b strings.Builder
	b.WriteString("| conversation | over |")
	for _, kernel := range vm.Kernels {
		fmt.Fprintf(&b, " our client, %s | our server, %s |", kernel, kernel)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|---|", len(vm.Kernels)) + "\n")
	for _, c := range cells() {
		if c.wantFailed != "" || c.ourServer {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |", c.name(), c.over)
		for _, kernel := range vm.Kernels {
			for _, c.ourServer = range []bool{false, true} {
				fmt.Fprintf(&b, " %s |", map[bool]string{true: "yes", false: "no"}[r[kernel][c.String()]])
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// document compares docs/interop.md with the results of a complete run. With -update it writes them
// there instead.
func (r results) document(t *testing.T) {
	if !r.complete() || *theirs {
		return // -run or theirs has left cells out
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegin)
	table, after, ended := strings.Cut(rest, tableEnd)
	switch {
	case !found || !ended:
		t.Fatalf("%s has no place for the results: want the lines\n%s%s", document, tableBegin, tableEnd)
	case table == "\n"+r.table()+"\n":
	case !*update:
		t.Errorf("%s shows other results: see -update. These are\n%s", document, r.table())
	default:
		if err := os.WriteFile(document, []byte(before+tableBegin+"\n"+r.table()+"\n"+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
