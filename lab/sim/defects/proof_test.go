package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/lab/sim/swarm"
)

// TestFinds has the simulator find one defect: a world fails with it, and passes without.
func TestFinds(t *testing.T) { finds(t, "no-goodbye") }

// TestProof has the simulator find each defect that it is said to find, within the seeds that it is
// said to need.
func TestProof(t *testing.T) {
	if !*proof {
		return
	}
	for _, d := range defects {
		if d.within > 0 && strings.Contains(d.name, *only) {
			t.Run(d.name, func(t *testing.T) { finds(t, d.name) })
		}
	}
}

func finds(t *testing.T, name string) {
	t.Helper()
	for _, d := range defects {
		if d.name != name {
			continue
		}
		h := hunt{ctx: t.Context(), root: root, tmp: t.TempDir(), from: 1, seeds: d.within, with: d.workload}
		seed, what, err := h.find(&d)
		if err != nil {
			t.Fatal(err)
		}
		if seed == 0 {
			t.Fatalf("the simulator does not find it within %d seeds of %s", d.within, d.workload)
		}
		t.Logf("seed %d of at most %d: %s", seed, d.within, what)
		return
	}
	t.Fatalf("there is no defect %s", name)
}

// seedsRow is a row of the table in docs/simulation.md: what row gives, and how many seeds it took.
var seedsRow = regexp.MustCompile(`(?m)^(\| [a-z0-9-]+ \|.*\| [a-z]+ \| \d+ \|) (\d+) \|$`)

// TestTable holds the table in docs/simulation.md to the defects that have a bound.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "simulation.md"))
	if err != nil {
		t.Fatal(err)
	}
	took := map[string]int{}
	for _, m := range seedsRow.FindAllStringSubmatch(string(text), -1) {
		took[m[1]], _ = strconv.Atoi(m[2]) // digits
	}
	found := 0
	for _, d := range defects {
		if d.within == 0 {
			continue
		}
		found++
		if !swarm.Known(d.workload) {
			t.Errorf("%s: there is no workload %q", d.name, d.workload)
		}
		switch n, ok := took[d.row()]; {
		case !ok:
			t.Errorf("docs/simulation.md has no row that begins with\n%s", d.row())
		case n < 1 || n > d.within:
			t.Errorf("docs/simulation.md: %s took %d seeds, and its bound is %d", d.name, n, d.within)
		}
	}
	if found != len(took) {
		t.Errorf("docs/simulation.md has %d rows, and there are %d defects with a bound", len(took), found)
	}
}
