package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// benchmark is a command of a document that measures with a package's benchmarks.
var benchmark = regexp.MustCompile("`go test \\./(\\S+) [^`]*-bench '?(\\w+)")

// TestBenchmarksInDocuments checks that the benchmarks in a document's commands exist: go test
// accepts a name that no benchmark has.
func TestBenchmarksInDocuments(t *testing.T) {
	found := 0
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "*/README.md"} {
		documents, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documents {
			text, err := os.ReadFile(document)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range benchmark.FindAllStringSubmatch(string(text), -1) {
				found++
				if !hasBenchmark(t, filepath.Join(root, m[1]), m[2]) {
					t.Errorf("%s: %s has no benchmark that ends in %s", filepath.Base(document), m[1], m[2])
				}
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d benchmarks found in the documents", found)
	}
}

// hasBenchmark reports whether a package has a benchmark of that name, or with that suffix.
func hasBenchmark(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func Benchmark\w*` + strings.TrimSpace(name)).Match(text) {
			return true
		}
	}
	return false
}
