package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFilesInReadmes checks that the tables of files in the README.md of packages list each file
// once.
func TestFilesInReadmes(t *testing.T) {
	for _, dir := range []string{"actor", "remoting"} {
		t.Run(dir, func(t *testing.T) {
			doc, err := os.ReadFile(filepath.Join(root, dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			_, table, found := strings.Cut(string(doc), "## The files")
			_, table, _ = strings.Cut(table, "|---|---|\n")
			table, _, ended := strings.Cut(table, "| `internal/` |")
			if !found || !ended {
				t.Fatal("there is no table of files")
			}
			var listed []string
			for _, row := range strings.Split(strings.TrimSpace(table), "\n") {
				listed = append(listed, strings.Split(strings.Trim(strings.Split(row, "|")[1], " "), ", ")...)
			}
			slices.Sort(listed)
			if want := sourceFiles(t, filepath.Join(root, dir)); !slices.Equal(listed, want) {
				t.Errorf("%s/README.md lists\n%v, the files are\n%v", dir, listed, want)
			}
		})
	}
}

// sourceFiles returns the names of a package's files without their suffixes, sorted. Tests, doc.go
// and needs64bit.go are left out.
func sourceFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	system := regexp.MustCompile(`(_linux|_other|_unsafe)*\.go$`)
	for _, f := range files {
		name := system.ReplaceAllString(filepath.Base(f), "")
		if !strings.HasSuffix(f, "_test.go") && !slices.Contains([]string{"doc", "needs64bit"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
