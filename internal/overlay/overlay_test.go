package overlay

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A text that is not there exactly once is no place for an edit. Edits of one file follow each
// other.
func TestApply(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]Edit{
		"0 times": {"a", "three", "3"}, "2 times": {"a", "two", "2"}, "no such file": {"b", "one", "1"},
	} {
		if _, err := Apply(root, e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", e, err, want)
		}
	}
	files, err := Apply(root, Edit{"a", "one two", "1"}, Edit{"a", "1", "one"}, Edit{"a", "two", "2"})
	if err != nil || len(files) != 1 || files["a"] != "one 2" {
		t.Errorf("%q, %v", files, err)
	}
}

// The go command builds the edited files, and the originals stay unchanged.
func TestWrite(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	main := filepath.Join(root, "main.go")
	source := "package main\n\nfunc main() { println(\"as it is\") }\n"
	for name, content := range map[string]string{main: source, filepath.Join(root, "go.mod"): "module m\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Write(root, dir, Edit{"main.go", "as it is", "changed"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-overlay="+list, ".")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "changed" {
		t.Errorf("%s, %v", out, err)
	}
	if b, err := os.ReadFile(main); err != nil || string(b) != source {
		t.Errorf("the file is %q, %v", b, err)
	}
}
