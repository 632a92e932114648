//go:build protoc

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// plugin builds the generator, and returns the folder that it is in.
func plugin(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	do(t, ".", "go", "build", "-o", filepath.Join(dir, "protoc-gen-go-rdmactor"), ".")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// do runs a program in a folder.
func do(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c, err, out)
	}
}

// all asserts that generate makes the committed files. It gets the folder to write to.
func all(t *testing.T, generate func(file, out string)) {
	t.Helper()
	for _, file := range current {
		out := t.TempDir()
		generate(file, out)
		name := file[:len(file)-len(".proto")] + "_rdmactor.pb.go"
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		same(t, filepath.Join(root, name), string(b))
	}
}

// The plugin works with protoc.
func TestProtoc(t *testing.T) {
	plugin(t)
	all(t, func(file, out string) {
		do(t, root, "protoc", "--go-rdmactor_out="+out, "--go-rdmactor_opt=paths=source_relative", file)
	})
}

// The plugin works with buf.
func TestBuf(t *testing.T) {
	dir := plugin(t)
	install := exec.CommandContext(t.Context(), "go", "install", "github.com/bufbuild/buf/cmd/buf@v1.57.2")
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "GOWORK=off")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all(t, func(file, out string) {
		template := `{"version": "v2", "plugins": [{"local": "protoc-gen-go-rdmactor", "out": "` + out + `", "opt": "paths=source_relative"}]}`
		do(t, root, "buf", "generate", "--template", template, "--path", file, ".")
	})
}
