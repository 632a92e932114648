package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var compiled struct {
	sync.Mutex
	files map[string]string
}

// Compile compiles a package to a static binary for the guest and returns its file, which is in the
// cache. command is "build" or "test -c", with flags if necessary. Compile compiles once per
// process. A later process may overwrite the file with a newer one.
func Compile(ctx context.Context, command, pkg string) (string, error) {
	key := command + " " + pkg
	compiled.Lock()
	defer compiled.Unlock()
	if file := compiled.files[key]; file != "" {
		return file, nil
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	env := []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}
	listed, err := tool(ctx, "", env, "go", "list", "-f", "{{.ImportPath}} {{.Module.Dir}}", pkg)
	if err != nil {
		return "", err
	}
	path, module, _ := strings.Cut(strings.TrimSpace(listed), " ")
	dir := filepath.Join(cache, "bin", recipe([]string{command, path, module}))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.Base(path))
	fresh := fmt.Sprintf("%s.%d", file, os.Getpid())
	if _, err := tool(ctx, "", env, "go", slices.Concat(strings.Fields(command), []string{"-o", fresh, path})...); err != nil {
		return "", err
	}
	// For a package without tests go test -c writes nothing.
	if _, err := os.Stat(fresh); err != nil {
		return "", errors.Join(fmt.Errorf("go %s %s made nothing", command, pkg), err)
	}
	if err := os.Rename(fresh, file); err != nil {
		return "", err
	}
	if compiled.files == nil {
		compiled.files = map[string]string{}
	}
	compiled.files[key] = file
	return file, nil
}
