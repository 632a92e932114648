package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/swarm"
)

var performed = flag.Bool("performed", false, "play 1,000 seeds, and see whether all that may happen does: a minute long")

// judged are the packages of which every part must be executed, except accusations.
var judged = []string{"workload", "faults"}

// accuses matches the beginning of code that is executed only if something is wrong.
var accuses = regexp.MustCompile(`(?i)\bfail(World)?\(|return "|return fmt.Sprintf|\bpanic\(r\)`)

// never matches code that 1,000 worlds need not execute.
var never = regexp.MustCompile(strings.Join([]string{
	`\) String$`,                            // worlds are played without being printed
	`connections\) Done, case !w\.late`,     // names whatever is missing
	`listOutstanding, case .*c\.forged`,     // answered immediately, most of the time
	`call\) handleKilled, a function in it`, // a process is killed while a handler runs: too rare
	`openWith, case p\.Context`,             // killed in the middle of Open: too rare
}, "|"))

// TestPerformed plays worlds, and checks that everything that can happen in one happens: each kind
// of device is played, each fault begins, and each operation is performed. For the last two, each
// function of their packages, and each case of a switch there, must be executed. So no workload has
// to count its operations.
func TestPerformed(t *testing.T) {
	if !*performed {
		return
	}
	const seeds = 1000
	devices := map[world.Kind]int{}
	for seed := range uint64(seeds) {
		devices[swarm.Draw(1+seed).Kind]++
	}
	for k := world.Embedded; k <= world.TwinSIW; k++ {
		t.Logf("device: %v: %d worlds", k, devices[k])
		if devices[k] == 0 {
			t.Errorf("device: %v: in no world", k)
		}
	}
	executed := executes(t, seeds)
	for _, pkg := range judged {
		files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				looks(t, file, executed)
			}
		}
	}
}

// block is a part of a file without branches.
type block struct{ line, column, endLine, endColumn int }

// executes plays seeds with an instrumented program, and returns whether each block of each file
// was executed.
func executes(t *testing.T, seeds int) map[string]blocks {
	t.Helper()
	tmp := t.TempDir()
	program, counts, profile := filepath.Join(tmp, "sim"), filepath.Join(tmp, "counts"), filepath.Join(tmp, "profile")
	if err := os.Mkdir(counts, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"go", "build", "-cover", "-coverpkg=.,./workload,./faults", "-o", program, "."},
		{program, "-seeds", fmt.Sprint(seeds), "-from", "1", "-shrink", "0"},
		{"go", "tool", "covdata", "textfmt", "-i=" + counts, "-o=" + profile},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+counts)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]blocks{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ".go:")
		var b block
		var statements, times int
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.line, &b.column, &b.endLine, &b.endColumn, &statements, &times); n != 6 {
			continue // the mode
		}
		file := filepath.Join(filepath.Base(filepath.Dir(name)), filepath.Base(name)+".go")
		if all[file] == nil {
			all[file] = blocks{}
		}
		all[file][b] = all[file][b] || times > 0
	}
	return all
}

// looks reports functions and cases of a file that were never executed.
func looks(t *testing.T, file string, executed map[string]blocks) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := func(from, to token.Pos) string {
		return string(source[set.Position(from).Offset:set.Position(to).Offset])
	}
	name := ""
	// part: body is not a whole function
	look := func(what string, body []ast.Stmt, part bool) {
		if len(body) == 0 {
			return
		}
		at := set.Position(body[0].Pos())
		what = fmt.Sprintf("%s: %s%s", file, name, what)
		ran, known := executed[file].at(at.Line, at.Column)
		if !known {
			t.Fatalf("%s: nobody has counted line %d", file, at.Line)
		}
		wrong := (part || len(body) == 1) && accuses.MatchString(text(body[0].Pos(), body[0].End()))
		if !ran && !wrong && !never.MatchString(what) {
			t.Errorf("%s was never executed (line %d)", what, at.Line)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name = text(n.Pos(), n.Type.Params.Pos())
			look("", n.Body.List, false)
		case *ast.FuncLit:
			look(", a function in it,", n.Body.List, true)
		case *ast.CaseClause:
			look(", "+text(n.Case, n.Colon), n.Body, true)
		}
		return true
	})
}

// blocks records whether each block of a file was executed.
type blocks map[block]bool

// at reports whether the block at a position was executed.
func (all blocks) at(line, column int) (ran, known bool) {
	for b, x := range all {
		after := line > b.line || line == b.line && column >= b.column
		before := line < b.endLine || line == b.endLine && column < b.endColumn
		if after && before {
			return x, true
		}
	}
	return false, false
}
