package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/metrics"
)

// TestOperatorsPages checks that everything named in the operators' pages exists: metrics, fields
// of the live page, incidents and their pictures.
func TestOperatorsPages(t *testing.T) {
	var page string
	for _, name := range []string{"operating.md", "observing.md", "incidents.md", "roce.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		page += string(text)
	}
	known := make(map[string]bool)
	for _, d := range metrics.Definitions() {
		known[d.Name()] = true
	}
	p := begin(t, "slow-reader")
	for _, path := range []string{"ids", "loops", "memory", "listeners", "devices", "sections/clients", "sections/dials"} {
		for name := range p.rows(path)[0] {
			known[name] = true
		}
	}
	// fields of an identifier: those of an incident on the embedded device do not have all of them
	id, err := os.ReadFile("../../inspect/ids.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`json:"([a-z_]+)`).FindAllSubmatch(id, -1) {
		known[string(m[1])] = true
	}
	unit := regexp.MustCompile(`^(rdmactor_[a-z_]+|[a-z]+(_[a-z]+)*_(seconds|messages|bytes|connections)|refused_[a-z]+|in_line|timed_out)$`)
	found := 0
	for _, name := range regexp.MustCompile("`[a-z_]+`").FindAllString(page, -1) {
		if name = strings.Trim(name, "`"); unit.MatchString(name) {
			found++
			if !known[name] {
				t.Errorf("there is no %s", name)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names found", found)
	}
	named := make(map[string]bool)
	for _, m := range regexp.MustCompile(`go run \./lab/incidents ([a-z-]+)`).FindAllStringSubmatch(page, -1) {
		named[m[1]] = true
	}
	if have := slices.Sorted(maps.Keys(incidents)); !slices.Equal(slices.Sorted(maps.Keys(named)), have) {
		t.Errorf("the pages have %v, and there are %v", named, have)
	}
	for name := range incidents {
		picture := "incident-" + name + ".png"
		if _, err := os.Stat("../../docs/" + picture); err != nil || !strings.Contains(page, "("+picture+")") {
			t.Errorf("%s: %v, and is it shown?", picture, err)
		}
	}
}
