// Package docscheck compares the documents with the code.
package docscheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root = "../.."
	// its subtests run under the tests of every package that imports it
	conformance = "internal/conformance"
)

// manpage is a man page that manpages.md covers sentence by sentence.
type manpage struct {
	name string
	rows int // so many that a row that is gone is missed, the last one, too
	// sum is CRC-32 of the sentences, a line each. Neither the pages nor the properties that their
	// tests show should change: after a change of a sentence, review its tests and update sum.
	sum uint32
}

var pages = []manpage{
	{"bind_addr", 8, 0x71760bfe}, {"resolve_addr", 13, 0x78cf3121}, {"listen", 9, 0x3b19723f}, {"getaddrinfo", 46, 0xedc0fdc6},
}

// TestManpages fails on a sentence of a man page that neither a test shows nor a deviation
// explains, on a row without a test, and on a row and a test of which only one names the other.
func TestManpages(t *testing.T) {
	doc, err := os.ReadFile("manpages.md")
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

// pkg has the contents of a directory's test files.
type pkg struct {
	tests    map[string][]*mark // test functions, and the marks above them
	subtests map[string][]*mark // possible subtests, named as go test prints them
	marks    []*mark
	suite    bool // runs the conformance suite
}

// mark is a comment above a test that names the rows of manpages.md which the test shows, such
// as "// manpages: listen-1, listen-2".
type mark struct {
	at   string          // the line
	rows map[string]bool // their ids; true are those that cite the test
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
			out[dir] = &pkg{tests: map[string][]*mark{}, subtests: map[string][]*mark{}}
		}
		return out[dir].add(name, src)
	})
	return out, err
}

// add takes a file's test functions and every literal that can name a subtest: the first argument
// of a Run, an element of a composite literal.
func (p *pkg) add(name string, src []byte) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, imp := range f.Imports {
		p.suite = p.suite || strings.HasSuffix(imp.Path.Value, "/"+conformance+`"`)
	}
	above := map[int][]*mark{} // indexed by line
	for _, group := range f.Comments {
		if lists := markLine.FindAllString(group.Text(), -1); lists != nil {
			end := fset.Position(group.End()).Line
			m := &mark{at: fmt.Sprintf("%s:%d", name, end), rows: map[string]bool{}}
			for _, id := range rowName.FindAllString(strings.Join(lists, " "), -1) {
				m.rows[id] = false
			}
			above[end+1] = []*mark{m}
			p.marks = append(p.marks, m)
		}
	}
	subtest := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		if s, err := strconv.Unquote(lit.Value); err == nil && s != "" {
			name := strings.ReplaceAll(s, " ", "_")
			p.subtests[name] = append(p.subtests[name], above[fset.Position(lit.Pos()).Line]...)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && strings.HasPrefix(n.Name.Name, "Test") {
				p.tests[n.Name.Name] = above[fset.Position(n.Pos()).Line]
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Run" && len(n.Args) == 2 {
				subtest(n.Args[0])
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				subtest(e)
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					subtest(kv.Key)
					subtest(kv.Value)
				}
			}
		}
		return true
	})
	return nil
}

// find returns the marks above the subtest at path, such as "bind/port_0", which consists of names
// of subtests.
func find(subtests map[string][]*mark, path string) (above []*mark, ok bool) {
	if above, ok = subtests[path]; ok {
		return above, true
	}
	for i, c := range path {
		if _, group := subtests[path[:i]]; c == '/' && group {
			if above, ok = find(subtests, path[i+1:]); ok {
				return above, true
			}
		}
	}
	return nil, false
}

var (
	markLine = regexp.MustCompile(`(?m)^manpages: .*$`)
	rowName  = regexp.MustCompile(`\b\w+-\d+\b`)
	rowID    = regexp.MustCompile(`^(\w+)-(\d+)$`)
	testRef  = regexp.MustCompile("^`([a-z0-9_/]+)\\.(Test\\w+)(?:/([^`]+))?`$")
)

// check reads the tables: id, sentence, tests, deviation. The ids of a page count from 1, so that
// no row gets lost.
func check(doc string, pages []manpage, code map[string]*pkg) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	last, sentences, heading := map[string]int{}, map[string]string{}, ""
	for _, line := range strings.Split(doc, "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			heading = title
		}
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
		sentences[page] += cells[1] + "\n"
		if want := "rdma_" + page + "(3)"; heading != want {
			complain("%s: stands under %q, not %q", id, heading, want)
		}
		if cells[2] == "" && cells[3] == "" {
			complain("%s: has neither a test nor a deviation", id)
		}
		if cells[3] != "" && !strings.Contains(cells[3], " ") {
			complain("%s: %q explains no deviation", id, cells[3])
		}
		refs := strings.Split(cells[2], "<br>")
		for i, ref := range refs {
			if slices.Contains(refs[:i], ref) {
				complain("%s: %s is cited twice", id, ref)
			}
			if ref = strings.TrimSpace(ref); ref != "" {
				above, why := resolve(ref, code)
				if why != "" {
					complain("%s: %s", id, why)
					continue
				}
				shown := false
				for _, m := range above {
					if _, ok := m.rows[id]; ok {
						m.rows[id], shown = true, true
					}
				}
				if !shown {
					complain("%s: %s: that test does not say that it shows this row: // manpages: %[1]s", id, ref)
				}
			}
		}
	}
	for _, p := range pages {
		if last[p.name] != p.rows {
			complain("rdma_%s(3) has %d rows, want %d: one was lost, or this test counts old ones", p.name, last[p.name], p.rows)
		} else if sum := crc32.ChecksumIEEE([]byte(sentences[p.name])); sum != p.sum {
			complain("rdma_%s(3) says something else: do the tests show that? Then its sum is %#x", p.name, sum)
		}
	}
	for _, p := range code {
		for _, m := range p.marks {
			for id, cited := range m.rows {
				if !cited {
					complain("%s: says that it shows %s, whose row does not cite it", m.at, id)
				}
			}
		}
	}
	return complaints
}

// resolve returns the marks above the test that ref names, or the fault of ref.
func resolve(ref string, code map[string]*pkg) (above []*mark, why string) {
	m := testRef.FindStringSubmatch(ref)
	if m == nil {
		return nil, fmt.Sprintf("%s: a test is written `package.TestName/subtest`", ref)
	}
	p := code[m[1]]
	if p == nil {
		return nil, fmt.Sprintf("%s: there is no func %s in %s", ref, m[2], m[1])
	}
	above, ok := p.tests[m[2]]
	if !ok {
		return nil, fmt.Sprintf("%s: there is no func %s in %s", ref, m[2], m[1])
	}
	if m[3] == "" {
		return above, ""
	}
	if above, ok = find(p.subtests, m[3]); ok {
		return above, ""
	}
	// its scenarios, perhaps in a group of p's
	if suite := code[conformance]; p.suite && suite != nil {
		all := maps.Clone(suite.subtests)
		for name, marks := range p.subtests {
			all[name] = append(slices.Clip(all[name]), marks...)
		}
		if above, ok = find(all, m[3]); ok {
			return above, ""
		}
	}
	return nil, fmt.Sprintf("%s: no subtest has that name", ref)
}
