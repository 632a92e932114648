package vm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Kernels are the release lines of Debian kernels that Build and Boot accept.
var Kernels = []string{"6.1", "6.12"}

// Image is a kernel in the cache, with the files to boot it.
type Image struct {
	Kernel  string // the line, one of Kernels
	Release string // as in uname -r
	kernel  string
	initrd  []string
}

// layout is part of the names in the cache. Change it when the content of the cache changes, unless
// a list of names changes as well.
const layout = "3"

// Build returns the image of a kernel. If the cache does not have it, Build fetches and builds it,
// which takes a minute or two and a few hundred MB of packages. Only one Build runs at a time, also
// in several processes. logf is called before something that takes long.
func Build(ctx context.Context, kernel string, logf func(format string, args ...any)) (*Image, error) {
	if err := checkSupported(); err != nil {
		return nil, err
	}
	if !slices.Contains(Kernels, kernel) {
		return nil, fmt.Errorf("kernel %q: known are %s", kernel, strings.Join(Kernels, ", "))
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	unlock, err := lockFile(filepath.Join(cache, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	image, err := buildImage(ctx, cache, kernel, logf)
	if err != nil {
		return nil, fmt.Errorf("building the VM's kernel %s: %w", kernel, err)
	}
	return image, nil
}

func buildImage(ctx context.Context, cache, kernel string, logf func(string, ...any)) (*Image, error) {
	programsAt := filepath.Join(cache, "programs-"+recipeHash(programPackages, programs, loaded, configs)+".cpio")
	dir := filepath.Join(cache, kernel+"-"+recipeHash(modules, []string{string(nodeGUID)}))
	image := &Image{Kernel: kernel, kernel: dir + "/vmlinux", initrd: []string{programsAt, dir + "/modules.cpio"}}
	name, err := os.ReadFile(filepath.Join(dir, "release"))
	image.Release = string(name)
	if _, noPrograms := os.Stat(programsAt); err == nil && noPrograms == nil {
		return image, nil
	}
	if err := installNeeds(ctx, logf, needToBuild); err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	logf("vm: reading the package lists")
	a, err := openApt(ctx, filepath.Join(scratch, "apt"), false)
	if err != nil {
		return nil, err
	}
	logf("vm: fetching the guest's programs")
	fresh := filepath.Join(scratch, "programs.cpio")
	if err := packPrograms(ctx, a, scratch, fresh); err != nil {
		return nil, err
	}
	kernelAt := filepath.Join(scratch, "image")
	if err := os.Mkdir(kernelAt, 0o755); err != nil {
		return nil, err
	}
	image.Release, err = packKernel(ctx, a, kernel, scratch, kernelAt, logf)
	if errors.Is(err, errNoKernel) {
		if a, err = openApt(ctx, filepath.Join(scratch, "apt"), true); err == nil {
			image.Release, err = packKernel(ctx, a, kernel, scratch, kernelAt, logf)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(kernelAt, "release"), []byte(image.Release), 0o644); err != nil {
		return nil, err
	}
	return image, errors.Join(os.Rename(fresh, programsAt), os.RemoveAll(dir), os.Rename(kernelAt, dir))
}

func cacheDir() (string, error) {
	dir := os.Getenv("RDMACTOR_VM_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "rdmactor-vm")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// recipeHash returns a short hash of the lists of names from which something is built.
func recipeHash(lists ...[]string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %q", layout, release, lists)
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}
