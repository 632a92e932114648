// Package docscheck holds the documents against the code they talk about.
package docscheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	root        = "../.."
	conformance = "cmid/cmidtest" // its subtests run under the tests of every package that imports it
)

// pages are the man pages that docs/manpages.md covers sentence by sentence.
var pages = []string{"bind_addr", "resolve_addr", "listen", "getaddrinfo"}

// TestManpages fails on a sentence of a man page that neither a test shows nor a deviation explains, and on a test that is gone.
func TestManpages(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "manpages.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := index(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range check(string(doc), pages, code) {
		t.Error(complaint)
	}
}

// pkg is what the test files of a directory hold.
type pkg struct {
	tests    map[string]bool // names of test functions
	subtests map[string]bool // names that can be subtests, as go test prints them
	suite    bool            // runs the conformance suite
}

// index reads all Go files under fsys, by directory.
func index(fsys fs.FS) (map[string]*pkg, error) {
	out := map[string]*pkg{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := path.Base(name); base == "testdata" || base != "." && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		dir := path.Dir(name)
		if !strings.HasSuffix(name, "_test.go") && (dir != conformance || !strings.HasSuffix(name, ".go")) {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if out[dir] == nil {
			out[dir] = &pkg{tests: map[string]bool{}, subtests: map[string]bool{}}
		}
		return out[dir].add(name, src)
	})
	return out, err
}

// add takes a file's test functions and every literal that can name a subtest: the first argument of a Run, an element of a
// composite literal.
func (p *pkg) add(name string, src []byte) error {
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, imp := range f.Imports {
		p.suite = p.suite || strings.HasSuffix(imp.Path.Value, "/"+conformance+`"`)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && strings.HasPrefix(n.Name.Name, "Test") {
				p.tests[n.Name.Name] = true
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Run" && len(n.Args) == 2 {
				p.subtest(n.Args[0])
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				p.subtest(e)
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					p.subtest(kv.Key)
					p.subtest(kv.Value)
				}
			}
		}
		return true
	})
	return nil
}

func (p *pkg) subtest(e ast.Expr) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	if s, err := strconv.Unquote(lit.Value); err == nil && s != "" {
		p.subtests[strings.ReplaceAll(s, " ", "_")] = true
	}
}

// has reports whether path, such as "bind/port_0", is made of names of subtests.
func has(names map[string]bool, path string) bool {
	if names[path] {
		return true
	}
	for i, c := range path {
		if c == '/' && names[path[:i]] && has(names, path[i+1:]) {
			return true
		}
	}
	return false
}

var (
	rowID   = regexp.MustCompile(`^(\w+)-(\d+)$`)
	testRef = regexp.MustCompile("^`([a-z0-9_/]+)\\.(Test\\w+)(?:/([^`]+))?`$")
)

// check reads the tables: id, sentence, tests, deviation. The ids of a page count from 1, so that no row gets lost.
func check(doc string, pages []string, code map[string]*pkg) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	last := map[string]int{}
	for _, line := range strings.Split(doc, "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		m := rowID.FindStringSubmatch(cells[0])
		if m == nil {
			if cells[0] != "id" && strings.Trim(cells[0], "-") != "" {
				complain("row %q: an id is a page and a number: listen-3", cells[0])
			}
			continue
		}
		id, page := m[0], m[1]
		n, _ := strconv.Atoi(m[2])
		if n != last[page]+1 {
			complain("%s: follows %s-%d", id, page, last[page])
		}
		last[page] = n
		if len(cells) != 4 {
			complain("%s: has %d columns, want 4: id, sentence, tests, deviation", id, len(cells))
			continue
		}
		if cells[1] == "" {
			complain("%s: says nothing", id)
		}
		if cells[2] == "" && cells[3] == "" {
			complain("%s: has neither a test nor a deviation", id)
		}
		for _, ref := range strings.Split(cells[2], "<br>") {
			if ref = strings.TrimSpace(ref); ref != "" {
				if why := resolve(ref, code); why != "" {
					complain("%s: %s", id, why)
				}
			}
		}
	}
	for _, p := range pages {
		if last[p] == 0 {
			complain("rdma_%s(3) has no rows", p)
		}
	}
	return complaints
}

// resolve says what is wrong with a reference to a test; "" when the test exists.
func resolve(ref string, code map[string]*pkg) string {
	m := testRef.FindStringSubmatch(ref)
	if m == nil {
		return fmt.Sprintf("%s: a test is written `package.TestName/subtest`", ref)
	}
	p := code[m[1]]
	if p == nil || !p.tests[m[2]] {
		return fmt.Sprintf("%s: there is no func %s in %s", ref, m[2], m[1])
	}
	if m[3] == "" || has(p.subtests, m[3]) {
		return ""
	}
	if suite := code[conformance]; p.suite && suite != nil && has(suite.subtests, m[3]) {
		return ""
	}
	return fmt.Sprintf("%s: no subtest has that name", ref)
}
