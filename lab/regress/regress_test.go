package main

import (
	"debug/elf"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchmarksExist: a benchmark that was renamed would be missing from both trees and fail a run
// of five minutes at its end.
func TestBenchmarksExist(t *testing.T) {
	for _, b := range benchmarks {
		name, _, _ := strings.Cut(b.bench, "/")
		files, err := filepath.Glob(filepath.Join("../..", b.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(source), "func Benchmark"+name+"(")
		}
		if !found {
			t.Errorf("package %s has no Benchmark%s", b.pkg, name)
		}
	}
}

// TestParse reads what test binaries print, with a log line between.
func TestParse(t *testing.T) {
	f, err := parseFigures(strings.NewReader("goos: linux\ncpu: any\nBenchmarkX/a-2 \t 1000\t 250.5 ns/op\t 31.0 cpu-ns/op\t 16 B/op\t 2 allocs/op\nlog\nPASS\n"))
	if err != nil || f[elapsed] != 250.5 || f[allocations] != 2 {
		t.Errorf("got %v, %v", f, err)
	}
	if _, err := parseFigures(strings.NewReader("PASS\n")); err == nil {
		t.Error("a run without a benchmark is accepted")
	}
}

// TestSumFunctions: a block belongs to the function that its address is in.
func TestSumFunctions(t *testing.T) {
	functions := []elf.Symbol{{Name: "a", Value: 100, Size: 10}, {Name: "b", Value: 120, Size: 5}}
	c, err := sumFunctions(strings.NewReader("100 3\n109 4\n110 50\n124 7\n99 60\n125 70\n"), functions)
	if want := (counts{"a": 7, "b": 7, "other code": 180}); err != nil || !maps.Equal(c, want) {
		t.Errorf("got %v, %v, want %v", c, err, want)
	}
	if f := c.figures(); f[instructions] != 194 {
		t.Errorf("the figures are %v, want 194 instructions", f)
	}
	if _, err := sumFunctions(strings.NewReader("what\n"), nil); err == nil {
		t.Error("text that is not the plugin's is accepted")
	}
}

// TestFunctionTable lists a function that only the earlier commit executes.
func TestFunctionTable(t *testing.T) {
	table := functionTable([2]counts{before: {"a": 9, "b": 1}, now: {"b": 2}})
	if want := "| a | 9.0 | 0.0 |\n| b | 1.0 | 2.0 |\n"; !strings.HasSuffix(table, want) {
		t.Errorf("got\n%s\nwant\n%s", table, want)
	}
}

// TestWorse: a figure is worse only if the spread says so, and an allocation more always is.
func TestWorse(t *testing.T) {
	pairs := func(unit string, before, now float64, ratios ...float64) [][2]figures {
		var p [][2]figures
		for _, r := range ratios {
			p = append(p, [2]figures{{unit: before}, {unit: now * r}})
		}
		return p
	}
	for name, c := range map[string]struct {
		pairs [][2]figures
		worse bool
	}{
		"equal":               {pairs(cpu, 100, 100, 0.9, 1, 1, 1.1), false},
		"twice":               {pairs(cpu, 100, 200, 0.9, 1, 1, 1.1), true},
		"a fifth, noisy":      {pairs(cpu, 100, 120, 0.5, 0.6, 1, 1.5), false},
		"a fifth, quiet":      {pairs(cpu, 100, 120, 0.99, 1, 1, 1.01), true},
		"one allocation":      {pairs(allocations, 2, 3, 1, 1), true},
		"the first":           {pairs(allocations, 0, 1, 1, 1), true},
		"a part of one":       {pairs(allocations, 0, 0.4, 1, 1), false},
		"not measured before": {[][2]figures{{nil, {cpu: 5}}}, false},
	} {
		all := comparePairs(c.pairs)
		if len(all) != 1 || all[0].isWorse() != c.worse {
			t.Errorf("%s: %+v, want worse %v", name, all, c.worse)
		}
	}
}
