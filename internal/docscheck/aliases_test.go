package docscheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAliasesNameTheirFields checks that the comment of an alias for a struct of an internal
// package names its exported fields: documentation shows an alias as its name and its comment, and
// no link leads to the fields.
func TestAliasesNameTheirFields(t *testing.T) {
	found := 0
	for _, dir := range []string{"actor", "rpc", "rdmanet", "remoting", "slots", "inspect", "metrics", "iwarp"} {
		eachType(t, filepath.Join(root, dir), func(file *ast.File, spec *ast.TypeSpec, comment string) {
			target, ok := spec.Type.(*ast.SelectorExpr)
			if !spec.Assign.IsValid() || !ok {
				return
			}
			path := imported(file, target.X.(*ast.Ident).Name)
			if !strings.Contains(path, "/internal/") {
				return
			}
			found++
			fields := exportedFields(t, filepath.Join(root, strings.TrimPrefix(path, "github.com/rdmactor/rdmactor/")), target.Sel.Name)
			for _, field := range fields {
				if !regexp.MustCompile(`\b` + field + `\b`).MatchString(comment) {
					t.Errorf("%s.%s: the comment does not name the field %s", dir, spec.Name.Name, field)
				}
			}
		})
	}
	if found < 10 {
		t.Errorf("only %d aliases found", found)
	}
}

// eachType calls visit with each exported type that a package declares.
func eachType(t *testing.T, dir string, visit func(file *ast.File, spec *ast.TypeSpec, comment string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, s := range decl.Specs {
				if spec := s.(*ast.TypeSpec); spec.Name.IsExported() {
					visit(file, spec, decl.Doc.Text()+spec.Doc.Text())
				}
			}
		}
	}
}

// imported returns the path of the package that a file imports under a name.
func imported(file *ast.File, name string) string {
	for _, i := range file.Imports {
		if path := strings.Trim(i.Path.Value, `"`); filepath.Base(path) == name {
			return path
		}
	}
	return ""
}

// exportedFields returns the exported fields of a package's struct.
func exportedFields(t *testing.T, dir, name string) (fields []string) {
	t.Helper()
	eachType(t, dir, func(_ *ast.File, spec *ast.TypeSpec, _ string) {
		structure, ok := spec.Type.(*ast.StructType)
		if !ok || spec.Name.Name != name {
			return
		}
		for _, f := range structure.Fields.List {
			for _, n := range f.Names {
				if n.IsExported() {
					fields = append(fields, n.Name)
				}
			}
		}
	})
	return fields
}
