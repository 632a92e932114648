package docscheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const ours = "(ours)"

// theirs matches the C name of a command or an event in a comment.
var theirs = regexp.MustCompile(`\brdma_[a-z_]+\(3\)|\bRDMA_CM_EVENT_[A-Z_]+\b`)

// vocabulary is the exported types of a package.
type vocabulary struct {
	docs    map[string]string // indexed by type
	aliases map[string]bool
	speaks  map[string]bool // types that are a command (Op) or an event (Kind)
}

// TestOurNames checks that the comment of every command and event states librdmacm's name, or marks
// the type as ours, and that docs/design.md lists the marked types.
func TestOurNames(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	cmid, actor := readVocabulary(t, "cmid"), readVocabulary(t, "actor")
	if len(cmid.speaks) < 30 || len(actor.speaks) < 8 {
		t.Fatalf("only %d and %d commands and events found", len(cmid.speaks), len(actor.speaks))
	}
	var marked []string
	for _, v := range []vocabulary{cmid, actor} {
		for name, doc := range v.docs {
			isOurs := strings.Contains(doc, ours)
			if isOurs {
				marked = append(marked, name)
			}
			if v.speaks[name] && !isOurs && !theirs.MatchString(doc) {
				t.Errorf("%s: its comment names neither what librdmacm calls it, nor %q", name, ours)
			}
		}
	}
	for name, alias := range actor.aliases {
		if alias && strings.Contains(cmid.docs[name], ours) != strings.Contains(actor.docs[name], ours) {
			t.Errorf("%s is %s in only one of cmid and actor", name, ours)
		}
	}
	slices.Sort(marked)
	marked = slices.Compact(marked)
	if listed := listedNames(t, string(doc)); !slices.Equal(listed, marked) {
		t.Errorf("docs/design.md lists as %s\n%v, the comments say\n%v", ours, listed, marked)
	}
}

// listedNames returns the list behind "(ours)": in the document, sorted.
func listedNames(t *testing.T, doc string) (names []string) {
	t.Helper()
	_, list, ok := strings.Cut(doc, `"`+ours+`":`)
	if !ok {
		t.Fatalf(`docs/design.md has no list behind "%s":`, ours)
	}
	list, _, _ = strings.Cut(list, ".")
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// readVocabulary parses a package's files, without its tests.
func readVocabulary(t *testing.T, dir string) vocabulary {
	t.Helper()
	v := vocabulary{docs: make(map[string]string), aliases: make(map[string]bool), speaks: make(map[string]bool)}
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				v.types(d)
			case *ast.FuncDecl:
				v.method(d)
			}
		}
	}
	return v
}

func (v vocabulary) types(d *ast.GenDecl) {
	for _, s := range d.Specs {
		s, ok := s.(*ast.TypeSpec)
		if !ok || !s.Name.IsExported() {
			continue
		}
		doc := s.Doc.Text()
		if doc == "" && !d.Lparen.IsValid() {
			doc = d.Doc.Text()
		}
		v.docs[s.Name.Name] = doc
		v.aliases[s.Name.Name] = s.Assign.IsValid()
	}
}

// method records a type with one of the methods that Command and Event require. The failures have
// their own Kind, too.
func (v vocabulary) method(d *ast.FuncDecl) {
	if d.Recv == nil || d.Name.Name != "Op" && d.Name.Name != "Kind" {
		return
	}
	recv := d.Recv.List[0].Type
	if p, ok := recv.(*ast.StarExpr); ok {
		recv = p.X
	}
	if id, ok := recv.(*ast.Ident); ok && id.IsExported() {
		v.speaks[id.Name] = true
	}
}
