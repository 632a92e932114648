package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Compiler configures how programs for the guest are built. The zero value makes static programs
// without cgo.
type Compiler struct {
	// Libibverbs links the module native into programs of this module, and makes it drive rxe and
	// siw, too. They are dynamic then.
	Libibverbs bool
	Cgo        bool
	Flags      []string // of go, after "build" or "test -c": -race, which needs Cgo
}

var compiled struct {
	sync.Mutex
	files map[string]string
}

// Compile compiles with the zero Compiler.
func Compile(ctx context.Context, command, pkg string) (string, error) {
	return Compiler{}.Compile(ctx, command, pkg)
}

// Compile compiles a package for the guest and returns its file, which is in the cache. command is
// "build" or "test -c", with flags if necessary. Compile compiles once per process. A later process
// may overwrite the file with a newer one.
func (c Compiler) Compile(ctx context.Context, command, pkg string) (string, error) {
	key := fmt.Sprint(c, command, " ", pkg)
	compiled.Lock()
	defer compiled.Unlock()
	if file := compiled.files[key]; file != "" {
		return file, nil
	}
	file, err := c.compileCached(ctx, command, pkg)
	if err != nil {
		return "", err
	}
	if compiled.files == nil {
		compiled.files = map[string]string{}
	}
	compiled.files[key] = file
	return file, nil
}

func (c Compiler) compileCached(ctx context.Context, command, pkg string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	env := []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=" + map[bool]string{true: "1", false: "0"}[c.Cgo]}
	listed, err := runTool(ctx, "", env, "go", "list", "-f", "{{.ImportPath}} {{.Name}} {{.Dir}} {{.Module.Dir}}", pkg)
	if err != nil {
		return "", err
	}
	p := strings.Fields(listed) // import path, name, directory, module's directory
	dir := filepath.Join(cache, "bin", recipeHash(c.Flags, []string{fmt.Sprint(c.Libibverbs, c.Cgo), command, p[0], p[3]}))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	args := slices.Concat(strings.Fields(command), c.Flags)
	if c.Libibverbs {
		if err := writeOverlay(dir, p[1], p[2]); err != nil {
			return "", err
		}
		args = append(args, "-overlay", filepath.Join(dir, "overlay.json"))
	}
	file := filepath.Join(dir, filepath.Base(p[0]))
	fresh := fmt.Sprintf("%s.%d", file, os.Getpid())
	if _, err := runTool(ctx, "", env, "go", append(args, "-o", fresh, p[0])...); err != nil {
		return "", err
	}
	// For a package without tests go test -c writes nothing.
	if _, err := os.Stat(fresh); err != nil {
		return "", errors.Join(fmt.Errorf("go %s %s made nothing", command, pkg), err)
	}
	return file, os.Rename(fresh, file)
}

// preference is a file of a program that is to run through libibverbs. The program's module does
// not require the module native; the repository's workspace has both.
const preference = `package %s

import (
	"github.com/rdmactor/rdmactor/internal/hca"
	_ "github.com/rdmactor/rdmactor/native"
)

func init() { hca.PreferLibrary() }
`

// writeOverlay writes an overlay that adds the preference to a package.
func writeOverlay(to, name, pkgDir string) error {
	added := "libibverbs.go"
	if name != "main" {
		added = "libibverbs_test.go" // the package's tests are the program
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(pkgDir, added): filepath.Join(to, "preference")}})
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		"overlay.json": string(overlay),
		"preference":   fmt.Sprintf(preference, name),
	} {
		if err := os.WriteFile(filepath.Join(to, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
