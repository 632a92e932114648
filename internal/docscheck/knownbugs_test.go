package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestKnownBugs checks that each bug of docs/known-bugs.md names tests, and that they exist.
func TestKnownBugs(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "known-bugs.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := index(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	report := regexp.MustCompile(`^\| \[[\w-]+#\d+\]\(https://github\.com/[\w-]+/[\w-]+/(issues|pull)/\d+\)`)
	reports := 0
	for _, line := range strings.Split(string(doc), "\n") {
		if !strings.HasPrefix(line, "| [") {
			continue
		}
		if reports++; !report.MatchString(line) {
			t.Errorf("a report is written [repository#number](its address): %.80s", line)
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for _, ref := range strings.Split(strings.TrimSpace(cells[len(cells)-1]), "<br>") {
			if _, why := resolve(ref, code); why != "" {
				t.Error(why)
			}
		}
	}
	if reports < 20 {
		t.Errorf("only %d rows found", reports)
	}
}
