package docscheck

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/states"
)

//go:generate go test . -run ^TestLibrdmacm$ -update

var update = flag.Bool("update", false, "write docs/librdmacm.md")

// coverage is docs/librdmacm.json: the counterpart of every symbol of librdmacm in this project. A
// test of package states checks that no symbol is missing.
type coverage struct {
	Symbols []covered
	Events  []covered
}

// covered is a symbol, or an event's type, and its answer.
type covered struct {
	Symbol, Event string
	Kind          string   // of a symbol: CM, V, U
	Since         string   // the version node, or "inline"
	Ours          []string // as package.Name, package.Type.Member
	Note          string   // the difference; without an answer, the reason
	Tests         []string // as in manpages.md, without the back quotes
	Page          string   // the manual page; "": it has none
}

func (c covered) name() string { return c.Symbol + c.Event }

// TestLibrdmacm compares docs/librdmacm.md with the table, and the table with the code.
func TestLibrdmacm(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "librdmacm.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table coverage
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	tests, err := index(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, dir := range []string{"actor", "cmid", "states", "verbs"} {
		exported(t, dir, names)
	}
	for _, row := range slices.Concat(table.Symbols, table.Events) {
		for _, complaint := range row.check(names, tests) {
			t.Errorf("%s: %s", row.name(), complaint)
		}
	}
	var events []string
	for _, row := range table.Events {
		events = append(events, row.Event)
	}
	for k := range states.Kind(states.NumKernelKinds) {
		if int(k) >= len(events) || events[k] != k.C() {
			t.Fatalf("the events are %v, want %s as number %d", events, k.C(), k)
		}
	}
	file, want := filepath.Join(root, "docs", "librdmacm.md"), table.page()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is stale: go generate ./internal/docscheck (%v)", file, err)
	}
}

// check returns the faults of a row.
func (c covered) check(names map[string]bool, tests map[string]*pkg) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	switch {
	case len(c.Ours) == 0 && c.Note == "":
		complain("has neither an answer nor a reason to have none")
	case len(c.Ours) > 0 && len(c.Tests) == 0:
		complain("has no test")
	case len(c.Ours) == 0 && len(c.Tests) > 0:
		complain("has a test of nothing")
	}
	for _, name := range c.Ours {
		if !names[name] {
			complain("there is no %s", name)
		}
	}
	for _, ref := range c.Tests {
		if _, why := resolve("`"+ref+"`", tests); why != "" {
			complain("%s", why)
		}
	}
	return complaints
}

// exported adds the exported names of a package: package.Name, and package.Type.Member for methods
// and fields, those of interfaces too.
func exported(t *testing.T, dir string, names map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			declared(d, func(parts ...string) {
				if !slices.ContainsFunc(parts, func(p string) bool { return !ast.IsExported(p) }) {
					names[dir+"."+strings.Join(parts, ".")] = true
				}
			})
		}
	}
}

// declared returns the names of a declaration.
func declared(d ast.Decl, add func(parts ...string)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name.Name)
			return
		}
		recv := d.Recv.List[0].Type
		if p, ok := recv.(*ast.StarExpr); ok {
			recv = p.X
		}
		if id, ok := recv.(*ast.Ident); ok {
			add(id.Name, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					add(n.Name)
				}
			case *ast.TypeSpec:
				add(s.Name.Name)
				for _, member := range members(s.Type) {
					add(s.Name.Name, member)
				}
			}
		}
	}
}

// members returns a struct's fields and an interface's methods, without embedded ones.
func members(typ ast.Expr) (names []string) {
	var list *ast.FieldList
	switch typ := typ.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
	}
	return names
}

// page returns docs/librdmacm.md.
func (c coverage) page() string {
	var b strings.Builder
	b.WriteString(`# Every symbol of librdmacm

Generated from [librdmacm.json](librdmacm.json), which names tests of each symbol, by
` + "`go generate ./internal/docscheck`" + `; do not edit. [from-librdmacm.md](from-librdmacm.md) describes how to move a program.

The symbols that librdmacm.so.1 exports (RDMACM_1.0 to 1.5) or its headers define inline, except the rsocket family, whose
equivalent in Go is net.Conn. Most commands and events of package ` + "`cmid`" + ` have the same names in package ` + "`actor`" + `. A version
after a symbol is the version node that introduced it.
`)
	for _, section := range []struct{ kind, title string }{
		{"CM", "Connection management"}, {"V", "Verbs: wrappers, and the inline helpers of rdma_verbs.h"}, {"U", "Utilities"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| symbol | here | what is different | manual page |\n|---|---|---|---|\n", section.title)
		for _, row := range c.Symbols {
			if row.Kind == section.kind {
				row.write(&b)
			}
		}
	}
	b.WriteString("\n## Events\n\nAll types of `enum rdma_cm_event_type`, by number. A number of a later kernel is accepted and ignored.\n\n" +
		"| event | here | what is different | manual page |\n|---|---|---|---|\n")
	for _, row := range c.Events {
		row.write(&b)
	}
	return b.String()
}

func (c covered) write(b *strings.Builder) {
	name := "`" + c.name() + "`"
	switch c.Since {
	case "", "1.0":
	case "inline":
		name += " inline"
	default:
		name += " " + c.Since
	}
	here := "no answer"
	if len(c.Ours) > 0 {
		here = quoted(c.Ours)
	}
	page := "none"
	if c.Page != "" {
		page = c.Page
		if short := strings.TrimSuffix(strings.TrimPrefix(page, "rdma_"), "(3)"); slices.ContainsFunc(pages, func(p manpage) bool { return p.name == short }) {
			page = fmt.Sprintf("[%s](../internal/docscheck/manpages.md#rdma_%s3)", page, short)
		}
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, here, c.Note, page)
}

func quoted(names []string) string {
	return "`" + strings.Join(names, "`<br>`") + "`"
}

// TestCoverageRows shows each complaint about a row.
func TestCoverageRows(t *testing.T) {
	names := map[string]bool{"cmid.ID": true, "cmid.ID.Listen": true}
	tests := testCode(t)
	for want, row := range map[string]covered{
		"": {Ours: []string{"cmid.ID", "cmid.ID.Listen"}, Tests: []string{"a.TestA/row_one"}},
		"has neither an answer nor a reason to have none": {},
		"has no test":                                              {Ours: []string{"cmid.ID"}},
		"has a test of nothing":                                    {Note: "why", Tests: []string{"a.TestA"}},
		"there is no cmid.ID.Drive":                                {Ours: []string{"cmid.ID.Drive"}, Tests: []string{"a.TestA"}},
		"`a.TestGone`: there is no func TestGone in a":             {Ours: []string{"cmid.ID"}, Tests: []string{"a.TestGone"}},
		"`a.TestA/row_three`: no subtest has that name":            {Ours: []string{"cmid.ID"}, Tests: []string{"a.TestA/row_three"}},
		"`nonsense`: a test is written `package.TestName/subtest`": {Ours: []string{"cmid.ID"}, Tests: []string{"nonsense"}},
	} {
		got := strings.Join(row.check(names, tests), "; ")
		if got != want {
			t.Errorf("%+v: %q, want %q", row, got, want)
		}
	}
}
