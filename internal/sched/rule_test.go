package sched_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ruled are the packages whose goroutines a simulation has to know. What eventloop starts is the
// loops' own.
var ruled = []string{
	"actor", "actor/internal/datapath", "actor/internal/mailbox", "actor/internal/memory", "actor/reconnect",
	"cmid", "cmid/cmidtest", "internal/inflight", "rdmanet", "remoting", "remoting/internal/inbox",
	"rpc", "rpc/internal/share", "slots",
}

// excepted are the functions that may break the rule, and why.
var excepted = map[string]string{
	"actor/internal/mailbox: scheduleMailbox": "without a Scheduler, a goroutine with an argument of one word is started with less",
	"actor: askLoops":                         "it has seen that the answer is there",
	"actor: dropLoops":                        "the loops never ran",
	"rdmanet: giveUp":                         "the token is there",
	"rpc: Serve":                              "it has seen that the error is there",
}

// TestGoroutinesAreScheduled checks that no goroutine off the loops starts or goes on without the
// Scheduler.
func TestGoroutinesAreScheduled(t *testing.T) {
	used := make(map[string]bool)
	for _, dir := range ruled {
		files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, c := range unscheduled(t, name, nil) {
				where := dir + ": " + c.in
				if used[where] = true; excepted[where] == "" {
					t.Errorf("%s:%v: %s: %s", name, c.line, c.in, c.what)
				}
			}
		}
	}
	for where := range excepted {
		if !used[where] {
			t.Errorf("%s needs no exception any more", where)
		}
	}
}

// TestTheRuleIsSeen checks that what breaks the rule is found.
func TestTheRuleIsSeen(t *testing.T) {
	for body, want := range map[string]int{
		`go f()`:                                     1,
		`time.AfterFunc(d, f)`:                       1,
		`context.AfterFunc(ctx, f)`:                  1,
		`time.Sleep(d)`:                              1,
		`x = rand.N(d)`:                              1,
		`x = rand.New(s).Int()`:                      0,
		`x = crypto.Int(r, n)`:                       1,
		`<-c`:                                        1,
		`<-c; s.Resume()`:                            0,
		`x := <-c; s.Resume(); f(x)`:                 0,
		`f(); return <-c`:                            1,
		`if <-c { s.Resume() }`:                      1,
		`for range n { <-c }`:                        1,
		`func() { <-c }()`:                           1,
		`w.Wait()`:                                   1,
		`w.Wait(); f(); s.Resume()`:                  1,
		`l.el.Shutdown(ctx)`:                         1,
		`select { case <-c: case x = <-d: }`:         1,
		`select { case <-c: f(); case <-d: }`:        1,
		`select { case <-c: case <-d: }; s.Resume()`: 0,
		`select { case <-c: s.Resume(); f(); case <-d: s.Resume() }`:                  0,
		`select { case <-c: s.Resume(); <-d; case <-d: s.Resume() }`:                  1,
		`select { case <-c: default: }`:                                               0,
		`if s.Await(c, d) { f() }; s.Go(f); s.AfterFunc(d, f); x := s.Rand().Intn(1)`: 0,
	} {
		source := "package p\nimport (\"context\"; crypto \"crypto/rand\"; \"math/rand/v2\"; \"time\")\nfunc _() {\n" + body + "\n}\n"
		if got := unscheduled(t, "p.go", source); len(got) != want {
			t.Errorf("%s: found %v, want %d", body, got, want)
		}
	}
}

// complaint is a place that breaks the rule.
type complaint struct {
	in   string // a function
	line int
	what string
}

// unscheduled finds what breaks the rule in a file. source is its text, or nil.
func unscheduled(t *testing.T, name string, source any) (all []complaint) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	random := imported(f, "math/rand/v2", "math/rand", "crypto/rand")
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		add := func(n ast.Node, what string) {
			all = append(all, complaint{fn.Name.Name, fset.Position(n.Pos()).Line, what})
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				add(n, "a goroutine that the Scheduler does not start: Go")
			case *ast.SelectorExpr:
				if what := ownMeans(n, random); what != "" {
					add(n, what)
				}
			case *ast.BlockStmt:
				waits(n.List, add)
			case *ast.CaseClause:
				waits(n.Body, add)
			case *ast.CommClause:
				waits(n.Body, add)
			}
			return true
		})
	}
	return all
}

// imported returns the names by which a file has packages.
func imported(f *ast.File, paths ...string) (names []string) {
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		switch {
		case !slices.Contains(paths, p):
		case i.Name != nil:
			names = append(names, i.Name.Name)
		default:
			names = append(names, path.Base(strings.TrimSuffix(p, "/v2")))
		}
	}
	return names
}

// ownMeans returns the complaint about a name of another package.
func ownMeans(n *ast.SelectorExpr, random []string) string {
	of, ok := n.X.(*ast.Ident)
	if !ok {
		return ""
	}
	switch name := of.Name + "." + n.Sel.Name; {
	case name == "time.AfterFunc":
		return "a timer that the Scheduler does not know: AfterFunc"
	case name == "context.AfterFunc":
		return "a callback that the Scheduler does not know: OnDone"
	case name == "time.Sleep", name == "time.After", name == "time.Tick":
		return "a wait that the Scheduler does not know"
	case slices.Contains(random, of.Name) && !slices.Contains([]string{"Rand", "Source", "New", "NewPCG"}, n.Sel.Name):
		return "a random number that the Scheduler does not give: Rand"
	}
	return ""
}

// waits finds the waits among statements, and complains of those that Resume does not follow.
func waits(list []ast.Stmt, add func(ast.Node, string)) {
	for i, s := range list {
		switch s := s.(type) {
		case *ast.SelectStmt:
			if blocks(s) && !resumes(list[i+1:]) && !allResume(s) {
				add(s, "a select that Resume does not follow")
			}
		case *ast.CommClause: // its select's
		default:
			if what := waitIn(s); what != "" && (compound(s) || !resumes(list[i+1:])) {
				add(s, what+" that Resume does not follow")
			}
		}
	}
}

// blocks reports whether a select has no default.
func blocks(s *ast.SelectStmt) bool {
	return !slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool { return c.(*ast.CommClause).Comm == nil })
}

// allResume reports whether each case of a select begins with Resume.
func allResume(s *ast.SelectStmt) bool {
	return !slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool { return !resumes(c.(*ast.CommClause).Body) })
}

// resumes reports whether statements begin with Resume.
func resumes(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	e, ok := list[0].(*ast.ExprStmt)
	return ok && method(e.X) == "Resume"
}

// compound reports whether what follows a statement may be reached without its wait, or the other
// way round.
func compound(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.DeclStmt:
		return false
	}
	return true
}

// waitIn names the wait in a statement itself: not in its blocks, nor in a function in it.
func waitIn(s ast.Stmt) (what string) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt, *ast.FuncLit, *ast.CaseClause:
			return false
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				what = "a receive"
			}
		case *ast.CallExpr:
			switch m := method(n); {
			case m == "Wait" && len(n.Args) == 0:
				what = "a Wait"
			case m == "el.Shutdown":
				what = "a loop's Shutdown"
			}
		}
		return true
	})
	return what
}

// method returns the name of a method that e calls, and for a Shutdown that of its receiver.
func method(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if of, ok := sel.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "Shutdown" {
		return fmt.Sprint(of.Sel.Name, ".Shutdown")
	}
	return sel.Sel.Name
}
