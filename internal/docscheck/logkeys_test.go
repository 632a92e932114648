package docscheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logging are the packages whose lines operators read.
var logging = []string{"actor", "cmid", "codec", "eventloop", "inspect", "iwarp", "rdmanet", "remoting", "rpc", "verbs"}

// TestLogKeys compares the keys with which lines are logged with those that docs/observing.md has.
func TestLogKeys(t *testing.T) {
	used := make(map[string]bool)
	walk(t, func(name string, src []byte) {
		rel, err := filepath.Rel(root, name)
		first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		test := strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.ToSlash(rel), "actortest/")
		if err != nil || filepath.Ext(name) != ".go" || test || !slices.Contains(logging, first) {
			return
		}
		for _, key := range logKeys(t, src) {
			used[key] = true
		}
	})
	page, err := os.ReadFile(filepath.Join(root, "docs", "observing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n| key | what |\n|---|---|\n")
	if !found {
		t.Fatal("docs/observing.md has no table of keys")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	listed := make(map[string]bool)
	for row := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, key := range regexp.MustCompile("`[^`]+`").FindAllString(cell, -1) {
			listed[strings.Trim(key, "`")] = true
		}
	}
	if u, l := slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(listed)); !slices.Equal(u, l) {
		t.Errorf("the code logs with\n%q\nand docs/observing.md lists\n%q", u, l)
	}
}

// logKeys returns the keys in a file's calls of a slog.Logger, of slog's attributes, and of
// logKeys.
func logKeys(t *testing.T, src []byte) (keys []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "logKeys" {
				ast.Inspect(n, func(n ast.Node) bool {
					if list, ok := n.(*ast.CompositeLit); ok {
						keys = append(keys, everyOther(list.Elts)...)
					}
					return true
				})
			}
		case *ast.CallExpr:
			keys = append(keys, keysOfCall(n)...)
		}
		return true
	})
	return keys
}

// keysOfCall returns the keys in a call that logs.
func keysOfCall(call *ast.CallExpr) []string {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	switch name := of.Sel.Name; name {
	case "Debug", "Info", "Warn", "Error":
		if _, text := call.Args[0].(*ast.BasicLit); text || isSum(call.Args[0]) {
			return everyOther(call.Args[1:])
		}
	case "logKeys":
		return everyOther(call.Args[1:])
	default:
		if pkg, ok := of.X.(*ast.Ident); ok && pkg.Name == "slog" && len(call.Args) == 2 {
			return everyOther(call.Args[:1])
		}
	}
	return nil
}

func isSum(e ast.Expr) bool {
	_, ok := e.(*ast.BinaryExpr)
	return ok
}

// everyOther returns the texts at the even places of a list.
func everyOther(list []ast.Expr) (texts []string) {
	for i := 0; i < len(list); i += 2 {
		if lit, ok := list[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
