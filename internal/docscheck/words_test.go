package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// packages has the packages whose exported names the documents use, by the names that they have
// there.
var packages = map[string]string{
	"actor": "actor", "rdma": "actor", "actortest": "actor/actortest", "reconnect": "actor/reconnect",
	"cmid": "cmid", "cmidtest": "cmid/cmidtest", "conformance": "internal/conformance", "ucm": "cmid/ucm", "verbs": "verbs", "uverbs": "verbs/uverbs",
	"states": "states", "eventloop": "eventloop", "eventlooptest": "eventloop/eventlooptest",
	"iwarp": "iwarp", "core": "internal/iwarp/core", "rpc": "rpc", "rdmanet": "rdmanet", "slots": "slots", "codec": "codec", "remoting": "remoting", "metrics": "metrics",
	"inspect": "inspect",
}

// qualified is an exported name, such as cmid.ID.Listen or Limits.Mailbox.
var qualified = regexp.MustCompile(`(?:\b([a-z]+)\.)?\b([A-Z]\w*(?:\.[A-Z]\w*)*)`)

// TestNamesInDocuments checks that the exported names and members that documents use exist.
func TestNamesInDocuments(t *testing.T) {
	names, anywhere := map[string]bool{}, map[string]bool{}
	for _, dir := range packages {
		exported(t, dir, names)
	}
	for name := range names {
		_, name, _ = strings.Cut(name, ".")
		anywhere[name] = true
	}
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "*/README.md", "*/*/README.md", "internal/docscheck/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, files...)
	}
	found := 0
	for _, file := range documents {
		if filepath.Base(file) == "CHANGELOG.md" { // also has removed names
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, quote := range regexp.MustCompile("`[^`\n]+`").FindAllString(string(text), -1) {
			for _, m := range qualified.FindAllStringSubmatch(quote, -1) {
				dir, ours := packages[m[1]]
				var there bool
				switch {
				case strings.HasPrefix(m[2], "Test") || strings.HasPrefix(m[2], "Benchmark"):
					continue
				case ours:
					there = names[dir+"."+m[2]]
				case m[1] == "" && strings.Contains(m[2], "."):
					there = anywhere[m[2]]
				default: // another module's, or a word
					continue
				}
				found++
				if !there {
					t.Errorf("%s: %s: there is no %s", filepath.Base(file), quote, m[0])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d names found", found)
	}
}
