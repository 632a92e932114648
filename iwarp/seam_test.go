package iwarp

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outside are packages that reach a machine, or chance, without sockets.Stack.
var outside = []string{"crypto/rand", "math/rand", "math/rand/v2", "net", "os", "syscall", "unsafe"}

// around returns the system interfaces that a source file uses without sockets.Stack. Of unix it
// may use constants and types, but no calls.
func around(t *testing.T, name string, src any) (found []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if slices.Contains(outside, path) {
			found = append(found, "imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name != "Errno" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "unix" {
				found = append(found, "calls unix."+s.Sel.Name)
			}
		}
		return true
	})
	return found
}

// TestSeam: whatever the device asks of the system, a simulated machine can answer.
func TestSeam(t *testing.T) {
	const wrong = `package iwarp
import "math/rand/v2"
func f() error { return unix.Close(rand.IntN(int(unix.Errno(1)))) }`
	if got, want := around(t, "wrong.go", wrong), []string{"imports math/rand/v2", "calls unix.Close"}; !slices.Equal(got, want) {
		t.Errorf("found %q in a file that is wrong, want %q", got, want)
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		for _, what := range around(t, f.Name(), nil) {
			t.Errorf("%s %s: a simulated machine would not see that; use instance.sys", f.Name(), what)
		}
	}
}
