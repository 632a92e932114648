package docscheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestComparison checks that docs/from-grpc.md names a test for whatever it states that package rpc
// has, and that these tests exist.
func TestComparison(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "from-grpc.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := index(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	const title = "\n| | rdmactor |"
	_, table, ok := strings.Cut(string(doc), title)
	if !ok {
		t.Fatalf("no table begins with %q", title)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")[2:]
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		has, tests := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[len(cells)-1])
		if tests == "" {
			if has != "-" && !strings.HasPrefix(has, "yes, ") { // a drawback
				t.Errorf("no test proves %q", row)
			}
			continue
		}
		for _, ref := range strings.Split(tests, "<br>") {
			if _, why := resolve(ref, code); why != "" {
				t.Error(why)
			}
		}
	}
	if len(rows) < 20 {
		t.Errorf("only %d rows found", len(rows))
	}
}
