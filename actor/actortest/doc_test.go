package actortest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The program in the package's documentation is one of the tests here.
func TestDocumentationRuns(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?m)^//\tfunc Test(?:.*\n//\t)*.*$`).FindString(string(doc))
	block = strings.TrimPrefix(strings.ReplaceAll(block, "\n//\t", "\n"), "//\t")
	if !strings.HasSuffix(block, "\n}") || !strings.Contains(string(tests), block+"\n") {
		t.Errorf("example_test.go does not have\n%s", block)
	}
}
