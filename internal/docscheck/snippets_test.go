package docscheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// snippets are the documents whose Go code is copied from examples, and where it is from.
var snippets = map[string]string{
	"docs/remoting.md": "remoting/example_test.go",
	"docs/rpc.md":      "rpc/example_method_test.go",
}

// TestSnippetsAreFromExamples checks that code in a document stands in an example, which is
// compiled and run. Its indentation may differ.
func TestSnippetsAreFromExamples(t *testing.T) {
	for document, example := range snippets {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(document)))
		if err != nil {
			t.Fatal(err)
		}
		code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(example)))
		if err != nil {
			t.Fatal(err)
		}
		all := "\n" + flush(string(code)) + "\n"
		found := 0
		for _, block := range strings.Split(string(text), "\n```go\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if found++; !strings.Contains(all, "\n"+flush(strings.TrimSpace(block))+"\n") {
				t.Errorf("%s: %s has no\n%s", document, example, block)
			}
		}
		if found == 0 {
			t.Errorf("%s has no Go code", document)
		}
	}
}

// flush returns code without its indentation, and without the alignment of a literal's values.
func flush(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}
