package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// selector is a file that is added to the package. A program calls defect $MUTANT, and appends the
// defects whose functions it calls to $MUTANTS_REACHED, once each.
const selector = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutant, _     = strconv.Atoi(os.Getenv("MUTANT"))
	mutantReached [%d]atomic.Bool
	mutantLog     = os.Getenv("MUTANTS_REACHED")
)

func isMutant(n int) bool {
	if mutantLog != "" && !mutantReached[n].Swap(true) {
		f, err := os.OpenFile(mutantLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		f.WriteString(strconv.Itoa(n) + "\n")
		f.Close()
	}
	return n == mutant
}
`

// edit replaces the bytes of a file from start to end.
type edit struct {
	start, end int
	with       string
}

// plantDefects writes the changed files of the package and the overlay for them. Of the sites it
// keeps those that compile, at most N; defect n is m.sites[n-1].
func (m *mutator) plantDefects(ctx context.Context, sites []Site) error {
	m.overlay = filepath.Join(m.tmp, "overlay.json")
	for {
		m.sites = sites[:min(len(sites), m.N)]
		lines, err := m.writeOverlay()
		if err != nil {
			return err
		}
		passed, out, err := m.runCommand(ctx, "", nil, "go", "build", "-gcflags=-e", "-overlay="+m.overlay, m.pkg.ImportPath)
		if err != nil || passed {
			return err
		}
		bad := map[int]bool{} // indices of sites that do not compile
		for _, e := range compileError.FindAllStringSubmatch(out, -1) {
			line, _ := strconv.Atoi(e[2])
			for i, l := range lines {
				if filepath.Base(m.sites[i].File) == e[1] && l[0] <= line && line <= l[1] {
					bad[i] = true
				}
			}
		}
		if len(bad) == 0 {
			return fmt.Errorf("%s does not compile without a defect:\n%s", m.pkg.ImportPath, out)
		}
		var rest []Site
		for i, s := range sites {
			if !bad[i] {
				rest = append(rest, s)
			}
		}
		sites = rest
	}
}

var compileError = regexp.MustCompile(`(?m)([^/\s]+\.go):(\d+):\d+: `)

// writeOverlay writes the files with the defects m.sites, and returns the first and the last line
// of each defect.
func (m *mutator) writeOverlay() (lines [][2]int, err error) {
	lines = make([][2]int, len(m.sites))
	byFile := map[string][]int{}
	for i, s := range m.sites {
		byFile[s.File] = append(byFile[s.File], i)
	}
	const name = "mutant_selector.go" // no file of the package
	add := filepath.Join(m.tmp, name)
	replace := map[string]string{filepath.Join(m.pkg.Dir, name): add}
	if err := os.WriteFile(add, fmt.Appendf(nil, selector, m.pkg.Name, len(m.sites)+1), 0o600); err != nil {
		return nil, err
	}
	for name, of := range byFile {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		var edits []edit
		var copies bytes.Buffer
		first := bytes.Count(text, []byte("\n")) + 1
		for _, i := range of {
			s := m.sites[i]
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || fset.Position(f.Pos()).Offset > s.Start || fset.Position(f.End()).Offset < s.End {
					continue
				}
				c := copier{fset: fset, text: text, fun: f, number: i + 1}
				lines[i][0] = first + bytes.Count(copies.Bytes(), []byte("\n"))
				copies.WriteString(c.copyWith(s))
				lines[i][1] = first + bytes.Count(copies.Bytes(), []byte("\n")) - 1
				edits = append(edits, c.callCopy()...)
			}
		}
		slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
		edits = slices.CompactFunc(edits, func(a, b edit) bool { return a == b }) // of parameters
		var changed bytes.Buffer
		at := 0
		for _, e := range edits {
			changed.Write(text[at:e.start])
			changed.WriteString(e.with)
			at = e.end
		}
		changed.Write(text[at:])
		changed.Write(copies.Bytes())
		replace[name] = filepath.Join(m.tmp, filepath.Base(name))
		if err := os.WriteFile(replace[name], changed.Bytes(), 0o600); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	return lines, errors.Join(err, os.WriteFile(m.overlay, list, 0o600))
}

// copier copies a function for one defect.
type copier struct {
	fset   *token.FileSet
	text   []byte
	fun    *ast.FuncDecl
	number int
}

func (c *copier) offset(p token.Pos) int { return c.fset.Position(p).Offset }

func (c *copier) name() string { return fmt.Sprintf("%s_mutant%d", c.fun.Name.Name, c.number) }

// copyWith returns the function with the defect, under a name of its own.
func (c *copier) copyWith(s Site) string {
	t := func(from, to int) string { return string(c.text[from:to]) }
	return t(c.offset(c.fun.Pos()), c.offset(c.fun.Name.Pos())) + c.name() +
		t(c.offset(c.fun.Name.End()), s.Start) + s.With + t(s.End, c.offset(c.fun.End())) + "\n"
}

// callCopy returns the edits by which the function calls its copy. They keep the lines.
func (c *copier) callCopy() (edits []edit) {
	nameFields := func(list *ast.FieldList, prefix string) (names []string) {
		if list == nil {
			return nil
		}
		for _, f := range list.List {
			suffix := ""
			if _, ok := f.Type.(*ast.Ellipsis); ok {
				suffix = "..."
			}
			if len(f.Names) == 0 {
				name := prefix + strconv.Itoa(len(names))
				edits = append(edits, edit{c.offset(f.Type.Pos()), c.offset(f.Type.Pos()), name + " "})
				names = append(names, name+suffix)
			}
			for _, n := range f.Names {
				name := n.Name
				if name == "_" {
					name = prefix + strconv.Itoa(len(names))
					edits = append(edits, edit{c.offset(n.Pos()), c.offset(n.End()), name})
				}
				names = append(names, name+suffix)
			}
		}
		return names
	}
	call := c.name()
	if c.fun.Recv != nil {
		call = nameFields(c.fun.Recv, "mutantReceiver")[0] + "." + call
	}
	var types []string
	if list := c.fun.Type.TypeParams; list != nil {
		for _, f := range list.List {
			for _, n := range f.Names {
				types = append(types, n.Name)
			}
		}
		call += "[" + strings.Join(types, ", ") + "]"
	}
	call += "(" + strings.Join(nameFields(c.fun.Type.Params, "mutantParam"), ", ") + ")"
	if c.fun.Type.Results != nil {
		call = "return " + call
	} else {
		call += "; return"
	}
	begin := c.offset(c.fun.Body.Lbrace) + 1
	return append(edits, edit{begin, begin, fmt.Sprintf(" if isMutant(%d) { %s };", c.number, call)})
}
