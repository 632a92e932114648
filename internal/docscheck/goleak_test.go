package docscheck

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tags are the build tags with which tests are run: CONTRIBUTING.md.
var tags = []string{"", "rdma", "vm", "abi"}

// TestLeaksAreLookedFor checks that a goroutine that outlives its package's tests fails them, in
// every package and with every tag. Packages that start none are no exception: goroutines come from
// the standard library as well.
func TestLeaksAreLookedFor(t *testing.T) {
	complaints, packages, err := leaky(root)
	if err != nil {
		t.Fatal(err)
	}
	if packages < 25 {
		t.Errorf("only %d packages with tests found", packages)
	}
	for _, c := range complaints {
		t.Error(c)
	}
}

// leaky names the packages under dir whose tests run without goleak's TestMain, and returns the
// number of packages with tests.
func leaky(dir string) (complaints []string, packages int, err error) {
	files := map[string][]string{} // the test files of each folder
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != dir && (base == "testdata" || strings.HasPrefix(base, ".")):
			return fs.SkipDir
		case strings.HasSuffix(base, "_test.go"):
			files[filepath.Dir(name)] = append(files[filepath.Dir(name)], base)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	for folder, tests := range files {
		for _, tag := range tags {
			with := build.Context{GOOS: "linux", GOARCH: "amd64", Compiler: "gc", ReleaseTags: build.Default.ReleaseTags}
			if tag != "" {
				with.BuildTags = []string{tag}
			}
			any, verified := false, false
			for _, name := range tests {
				match, err := with.MatchFile(folder, name)
				if err != nil {
					return nil, 0, err
				}
				if !match {
					continue
				}
				any = true
				main, err := verifies(filepath.Join(folder, name))
				if err != nil {
					return nil, 0, err
				}
				verified = verified || main
			}
			if any && !verified {
				rel, err := filepath.Rel(dir, folder)
				if err != nil {
					return nil, 0, err
				}
				complaint := rel + ": its tests run without goleak.VerifyTestMain"
				if tag != "" {
					complaint += ", with the tag " + tag
				}
				complaints = append(complaints, complaint)
				break
			}
		}
	}
	slices.Sort(complaints)
	return complaints, len(files), nil
}

// verifies reports whether a file has a TestMain that ends with goleak's.
func verifies(name string) (bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return false, err
	}
	for _, d := range f.Decls {
		main, ok := d.(*ast.FuncDecl)
		if !ok || main.Recv != nil || main.Name.Name != "TestMain" || len(main.Body.List) == 0 {
			continue
		}
		last, ok := main.Body.List[len(main.Body.List)-1].(*ast.ExprStmt)
		if !ok {
			return false, nil
		}
		call, ok := last.X.(*ast.CallExpr)
		if !ok {
			return false, nil
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false, nil
		}
		pkg, ok := sel.X.(*ast.Ident)
		return ok && pkg.Name == "goleak" && sel.Sel.Name == "VerifyTestMain", nil
	}
	return false, nil
}

// TestLeaky shows each complaint.
func TestLeaky(t *testing.T) {
	const main = "import \"go.uber.org/goleak\"\nfunc TestMain(m *testing.M) { prepare(); goleak.VerifyTestMain(m) }\n"
	for name, row := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a good package":    {files: map[string]string{"a_test.go": "package a\n", "main_test.go": "package a\n" + main}},
		"the external test": {files: map[string]string{"a_test.go": "package a\n", "main_test.go": "package a_test\n" + main}},
		"on Linux":          {files: map[string]string{"a_test.go": "package a\n", "main_linux_test.go": "package a\n" + main}},
		"no test":           {files: map[string]string{"a.go": "package a\n"}},
		"none": {
			files: map[string]string{"a_test.go": "package a\n"},
			want:  []string{"p: its tests run without goleak.VerifyTestMain"},
		},
		"with another tag than the tests": {
			files: map[string]string{"a_test.go": "//go:build rdma\n\npackage a\n", "main_test.go": "//go:build abi\n\npackage a\n" + main},
			want:  []string{"p: its tests run without goleak.VerifyTestMain, with the tag rdma"},
		},
		"another TestMain": {
			files: map[string]string{
				"a_test.go": "//go:build vm\n\npackage a\nfunc TestMain(m *testing.M) { os.Exit(m.Run()) }\n",
			},
			want: []string{"p: its tests run without goleak.VerifyTestMain, with the tag vm"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "p"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range row.files {
				if err := os.WriteFile(filepath.Join(dir, "p", file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, _, err := leaky(dir)
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("%q, %v, want %q", got, err, row.want)
			}
		})
	}
}
