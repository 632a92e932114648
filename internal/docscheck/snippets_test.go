package docscheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snippets are the documents whose Go code is copied from examples, and where it is from.
var snippets = map[string]string{
	"docs/metrics.md":   "metrics/prom/example_test.go",
	"docs/operating.md": "metrics/prom/example_test.go",
	"docs/remoting.md":  "remoting/example_test.go",
	"docs/rpc.md":       "rpc/example_method_test.go",
}

// fragments are the documents whose Go code is in no example, and for each of its blocks the
// parameters of a function of which it can be the body.
var fragments = map[string][]string{
	"docs/from-librdmacm.md": {"rt *rdma.Runtime, system *actor.ActorSystem, owner *actor.PID", "ctx actor.Context"},
	"docs/keys.md":           {"config *tls.Config"},
	"docs/roce.md":           {""},
}

var (
	// goBlock is a block of Go code in a document.
	goBlock = regexp.MustCompile("(?ms)^ *```go\n(.*?)^ *```")
	// shortDecl is a statement that declares a variable.
	shortDecl = regexp.MustCompile(`(?m)^ *(\w+) :=`)
)

// TestSnippetsAreFromExamples checks that code in a document stands in an example, which is
// compiled and run. Its indentation may differ.
func TestSnippetsAreFromExamples(t *testing.T) {
	for document, example := range snippets {
		code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(example)))
		if err != nil {
			t.Fatal(err)
		}
		all := "\n" + flush(string(code)) + "\n"
		blocks := goBlocks(t, document)
		for _, block := range blocks {
			if !strings.Contains(all, "\n"+flush(strings.TrimSpace(block))+"\n") {
				t.Errorf("%s: %s has no\n%s", document, example, block)
			}
		}
		if len(blocks) == 0 {
			t.Errorf("%s has no Go code", document)
		}
	}
}

// TestFragmentsCompile checks that the code compiles which documents have and no example has.
func TestFragmentsCompile(t *testing.T) {
	var program strings.Builder
	program.WriteString(`package main

import (
	"crypto/tls"
	"crypto/x509"
	"log"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

func main() {}
`)
	n := 0
	for document, parameters := range fragments {
		blocks := goBlocks(t, document)
		if len(blocks) != len(parameters) {
			t.Fatalf("%s has %d blocks of Go code, not %d", document, len(blocks), len(parameters))
		}
		for i, block := range blocks {
			n++
			for _, m := range shortDecl.FindAllStringSubmatch(block, -1) {
				block += "_ = " + m[1] + "\n" // the document does not use it
			}
			fmt.Fprintf(&program, "\n// %s\nfunc fragment%d(%s) {\n%s}\n", document, n, parameters[i], block)
		}
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAllGoCodeIsChecked checks that no document has Go code which no test compiles.
func TestAllGoCodeIsChecked(t *testing.T) {
	walk(t, func(name string, src []byte) {
		document, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		document = filepath.ToSlash(document)
		if filepath.Ext(name) != ".md" || document == "README.md" || snippets[document] != "" || fragments[document] != nil {
			return
		}
		if block := goBlock.Find(src); block != nil {
			t.Errorf("%s is in neither snippets nor fragments:\n%s", document, block)
		}
	})
}

// goBlocks returns the Go code of a document.
func goBlocks(t *testing.T, document string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(document)))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range goBlock.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// flush returns code without its indentation, and without the alignment of a literal's values.
func flush(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}
