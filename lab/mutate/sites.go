package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
)

// Site is one possible defect: the bytes of a file from Start to End are replaced.
type Site struct {
	File       string // absolute
	Start, End int    // offsets in bytes
	With       string

	Operator string
	Line     int
	Func     string // the enclosing function, or ""
	Was      string
}

func (s Site) String() string {
	return fmt.Sprintf("%s:%d: %s: %s: %q becomes %q", s.File, s.Line, s.Func, s.Operator, s.Was, s.With)
}

// source collects the sites of one file.
type source struct {
	name  string
	text  []byte
	fset  *token.FileSet
	sites []Site
	fun   string
}

// findSites returns the sites of a Go file in the order of its text. Generated files have none.
func findSites(name string) ([]Site, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := &source{name: name, text: text, fset: token.NewFileSet()}
	file, err := parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || recovers(f) {
			continue // constants and types have few defects that compile, and tables are data
		}
		s.fun = f.Name.Name
		if f.Recv != nil && len(f.Recv.List) > 0 {
			s.fun = "(" + s.textOf(f.Recv.List[0].Type) + ")." + s.fun
		}
		ast.Inspect(f.Body, s.visitNode)
	}
	return s.sites, nil
}

// recovers reports whether a function calls recover itself, which its copy could not do for it.
func recovers(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, ok := call.Fun.(*ast.Ident)
			found = found || ok && name.Name == "recover"
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// textOf returns the text of a node.
func (s *source) textOf(n ast.Node) string {
	return string(s.text[s.offset(n.Pos()):s.offset(n.End())])
}

func (s *source) addSite(operator string, from, to token.Pos, with string) {
	s.sites = append(s.sites, Site{
		File: s.name, Start: s.offset(from), End: s.offset(to), With: with,
		Operator: operator, Line: s.fset.Position(from).Line, Func: s.fun, Was: string(s.text[s.offset(from):s.offset(to)]),
	})
}

// neighbours are operators that are easily confused.
var neighbours = map[string]string{
	"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "&&": "||", "||": "&&", "+": "-", "-": "+",
}

func (s *source) visitNode(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		if x, ok := n.Cond.(*ast.BinaryExpr); ok && x.Op == token.NEQ && s.textOf(x.Y) == "nil" && s.textOf(x.X) == "err" {
			s.addSite("dropped error", n.Cond.Pos(), n.Cond.End(), "false && "+s.textOf(n.Cond))
		} else {
			s.addSite("negated condition", n.Cond.Pos(), n.Cond.End(), "!("+s.textOf(n.Cond)+")")
		}
	case *ast.BinaryExpr:
		if with, ok := neighbours[n.Op.String()]; ok {
			s.addSite("another operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), with)
		}
	case *ast.ReturnStmt:
		for _, r := range n.Results {
			if id, ok := r.(*ast.Ident); ok && id.Name == "err" {
				s.addSite("dropped error", r.Pos(), r.End(), "nil")
			}
		}
	case *ast.BasicLit:
		if v, err := strconv.ParseInt(n.Value, 0, 62); n.Kind == token.INT && err == nil {
			s.addSite("off by one", n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			s.addSite("wrong constant", n.Pos(), n.End(), "false")
		case "false":
			s.addSite("wrong constant", n.Pos(), n.End(), "true")
		}
	case *ast.BlockStmt:
		s.visitStatements(n.List)
	case *ast.CaseClause:
		s.visitStatements(n.Body)
	case *ast.CommClause:
		s.visitStatements(n.Body)
	}
	return true
}

func (s *source) visitStatements(list []ast.Stmt) {
	for i, st := range list {
		if !isMovable(st) {
			continue
		}
		s.addSite("deleted statement", st.Pos(), st.End(), "")
		if i > 0 && isMovable(list[i-1]) {
			before := list[i-1]
			between := string(s.text[s.offset(before.End()):s.offset(st.Pos())])
			s.addSite("swapped neighbours", before.Pos(), st.End(), s.textOf(st)+between+s.textOf(before))
		}
	}
}

// isMovable reports whether a statement declares nothing and leaves the control flow as it is.
func isMovable(st ast.Stmt) bool {
	switch st := st.(type) {
	case *ast.AssignStmt:
		return st.Tok != token.DEFINE
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt:
		return true
	}
	return false
}
