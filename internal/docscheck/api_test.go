package docscheck

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAPI compares the exported declarations of all packages that users import with docs/api.txt. A
// line that is missing there is an addition; one that is only there was removed or changed, which
// docs/versions.md allows in a release that says so.
func TestAPI(t *testing.T) {
	var lines []string
	for _, dir := range publicPackages(t) {
		lines = append(lines, apiOf(t, dir)...)
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	name := filepath.Join(root, "docs", "api.txt")
	if *update {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	recorded := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, l := range lines {
		if !slices.Contains(recorded, l) {
			t.Errorf("new: %s", l)
		}
	}
	for _, l := range recorded {
		if !slices.Contains(lines, l) {
			t.Errorf("removed or changed: %s", l)
		}
	}
	if t.Failed() {
		t.Log("after a change of the API: go test ./internal/docscheck -run TestAPI -update")
	}
}

// publicPackages returns the directories of the packages that users import, of all modules.
func publicPackages(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case slices.Contains([]string{".git", "testdata", "lab", "examples", "cmd", "internal", "chat", "beside"}, d.Name()):
			return fs.SkipDir
		}
		dirs = append(dirs, dir)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// apiOf returns the exported declarations of a package, as it is built for Linux without tags.
func apiOf(t *testing.T, dir string) (lines []string) {
	t.Helper()
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "linux", "amd64", false
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	for _, name := range names {
		match, err := ctx.MatchFile(dir, filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		if !match || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name == "main" {
			return nil
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		a := api{fset: fset, pkg: filepath.ToSlash(rel)}
		for _, d := range f.Decls {
			a.declaration(d)
		}
		lines = append(lines, a.lines...)
	}
	return lines
}

// api collects the exported declarations of a file.
type api struct {
	fset  *token.FileSet
	pkg   string
	lines []string
}

func (a *api) add(format string, args ...any) {
	a.lines = append(a.lines, a.pkg+": "+fmt.Sprintf(format, args...))
}

func (a *api) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		a.function(d)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						a.add("%s %s", d.Tok, n.Name)
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					a.typ(s)
				}
			}
		}
	}
}

func (a *api) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	of := ""
	if d.Recv != nil {
		of = a.text(d.Recv.List[0].Type)
		if !ast.IsExported(strings.TrimLeft(of, "*")) {
			return
		}
		of = "(" + of + ") "
	}
	a.add("func %s%s%s", of, d.Name.Name, a.signature(d.Type))
}

// signature returns parameters and results without their names.
func (a *api) signature(f *ast.FuncType) string {
	types := func(l *ast.FieldList) string {
		if l == nil {
			return ""
		}
		var all []string
		for _, p := range l.List {
			for range max(len(p.Names), 1) {
				all = append(all, a.text(p.Type))
			}
		}
		return strings.Join(all, ", ")
	}
	s := ""
	if f.TypeParams != nil {
		var all []string
		for _, p := range f.TypeParams.List {
			for _, n := range p.Names {
				all = append(all, n.Name+" "+a.text(p.Type))
			}
		}
		s = "[" + strings.Join(all, ", ") + "]"
	}
	s += "(" + types(f.Params) + ")"
	if r := types(f.Results); strings.Contains(r, ",") {
		s += " (" + r + ")"
	} else if r != "" {
		s += " " + r
	}
	return s
}

func (a *api) typ(s *ast.TypeSpec) {
	name := s.Name.Name
	if s.Assign.IsValid() {
		a.add("type %s = %s", name, a.text(s.Type))
		return
	}
	switch typ := s.Type.(type) {
	case *ast.StructType:
		a.add("type %s struct", name)
		for _, f := range typ.Fields.List {
			for _, n := range f.Names {
				if n.IsExported() {
					a.add("type %s struct, %s %s", name, n.Name, a.text(f.Type))
				}
			}
			if len(f.Names) == 0 {
				a.add("type %s struct, embedded %s", name, a.text(f.Type))
			}
		}
	case *ast.InterfaceType:
		a.add("type %s interface", name)
		for _, m := range typ.Methods.List {
			f, ok := m.Type.(*ast.FuncType)
			switch {
			case !ok:
				a.add("type %s interface, %s", name, a.text(m.Type))
			case m.Names[0].IsExported():
				a.add("type %s interface, %s%s", name, m.Names[0].Name, a.signature(f))
			default:
				a.add("type %s interface, an unexported method", name)
			}
		}
	default:
		a.add("type %s %s", name, a.text(s.Type))
	}
}

// text prints a type on one line.
func (a *api) text(n ast.Node) string {
	if f, ok := n.(*ast.FuncType); ok {
		return "func" + a.signature(f)
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, a.fset, n); err != nil {
		panic(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
