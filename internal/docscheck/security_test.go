package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// namedTest is a test in docs/security-bounds.md: its directory and its name.
var namedTest = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")

// Every bound in docs/security-bounds.md has a test, and the test is there.
func TestSecurityNamesTests(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "security-bounds.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := index(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	names := namedTest.FindAllStringSubmatch(string(doc), -1)
	if len(names) < 16 {
		t.Errorf("docs/security-bounds.md names %d tests", len(names))
	}
	for _, n := range names {
		p := code[n[1]]
		if p == nil {
			t.Errorf("docs/security-bounds.md: there is no package %s with tests", n[1])
		} else if _, ok := p.tests[n[2]]; !ok {
			t.Errorf("docs/security-bounds.md: there is no func %s in %s", n[2], n[1])
		}
	}
}
