package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestActorFiles checks that the table of package actor's files in docs/design.md lists each once.
func TestActorFiles(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(doc), "The files of `actor`, from the top down.")
	_, table, _ = strings.Cut(table, "|---|---|\n")
	table, _, ended := strings.Cut(table, "| `internal/` |")
	if !found || !ended {
		t.Fatal("docs/design.md has no table of the files of actor")
	}
	var listed []string
	for _, row := range strings.Split(strings.TrimSpace(table), "\n") {
		listed = append(listed, strings.Split(strings.Trim(strings.Split(row, "|")[1], " "), ", ")...)
	}
	files, err := filepath.Glob(filepath.Join(root, "actor", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	system := regexp.MustCompile(`(_linux|_other|_unsafe)*\.go$`)
	var want []string
	for _, f := range files {
		name := system.ReplaceAllString(filepath.Base(f), "")
		if strings.HasSuffix(f, "_test.go") || slices.Contains([]string{"doc", "needs64bit"}, name) {
			continue
		}
		want = append(want, name)
	}
	slices.Sort(listed)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(listed, want) {
		t.Errorf("docs/design.md lists\n%v, the files are\n%v", listed, want)
	}
}
