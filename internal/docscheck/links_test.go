package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// link is a link in a document, without those to other hosts.
	link = regexp.MustCompile(`\]\(([^)\s:]+)\)`)
	// heading is a line that links may point to.
	heading = regexp.MustCompile("(?m)^#+ (.*)$")
	// code is text in which nothing is a link or a heading.
	code = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
)

// TestLinks checks that the files and headings exist to which links of documents point.
func TestLinks(t *testing.T) {
	found := 0
	walk(t, func(document string, src []byte) {
		if filepath.Ext(document) != ".md" {
			return
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(src), ""), -1) {
			found++
			if why := broken(document, m[1]); why != "" {
				t.Errorf("%s: %s", document, why)
			}
		}
	})
	if found < 300 {
		t.Errorf("only %d links found", found)
	}
}

// broken returns what is wrong with a link of a document.
func broken(document, target string) string {
	name, anchor, _ := strings.Cut(target, "#")
	file := document
	if name != "" {
		file = filepath.Join(filepath.Dir(document), filepath.FromSlash(name))
	}
	if _, err := os.Stat(file); err != nil {
		return target + ": there is no such file"
	}
	if anchor == "" || filepath.Ext(file) != ".md" {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	blocks := regexp.MustCompile("(?ms)^```.*?^```")
	for _, m := range heading.FindAllStringSubmatch(blocks.ReplaceAllString(string(text), ""), -1) {
		if anchorOf(m[1]) == anchor {
			return ""
		}
	}
	return target + ": there is no such heading"
}

// anchorOf returns the anchor that GitHub gives a heading.
func anchorOf(title string) string {
	title = regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(title, " ", "-")
}
