package vm

import (
	"archive/tar"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// siwDir is siw's directory in the kernel's source.
const siwDir = "drivers/infiniband/sw/siw/"

// nodeGUID is the source of a module for tests, which takes the node GUIDs of devices away.
//
//go:embed nodeguid/nodeguid.c
var nodeGUID []byte

// buildSiw compiles siw from the package linux-source, and nodeguid, with the headers that are
// unpacked below root. It writes the modules to the directory modules.
func buildSiw(ctx context.Context, deb, root, release, dir, modules string) error {
	objects, err := unpackSiw(ctx, deb, dir)
	if err != nil {
		return fmt.Errorf("siw's source: %w", err)
	}
	kbuild := "obj-m := siw.o nodeguid.o\nsiw-y := " + strings.Join(objects, " ") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "Kbuild"), []byte(kbuild), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "nodeguid.c"), nodeGUID, 0o644); err != nil {
		return err
	}
	headers := filepath.Join(root, "usr/src/linux-headers-"+release)
	if err := relocateInclude(filepath.Join(headers, "Makefile"), root); err != nil {
		return err
	}
	// If there were a vmlinux, the build would make debug information for BPF, with a tool that is
	// not installed.
	if err := os.RemoveAll(filepath.Join(headers, "vmlinux")); err != nil {
		return err
	}
	libs, err := kbuildLibraries(root, filepath.Join(filepath.Dir(dir), "programs"))
	if err != nil {
		return err
	}
	env := []string{"LD_LIBRARY_PATH=" + libs}
	if _, err := runTool(ctx, "", env, "make", "-C", headers, "M="+dir, "CC=gcc", "modules"); err != nil {
		return err
	}
	for _, name := range []string{"siw.ko", "nodeguid.ko"} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(modules, name)); err != nil {
			return err
		}
	}
	return nil
}

// relocateInclude changes the headers' Makefile, which includes another Makefile by its absolute
// path, so that it finds that one below root.
func relocateInclude(makefile, root string) error {
	b, err := os.ReadFile(makefile)
	if err != nil {
		return err
	}
	return os.WriteFile(makefile, []byte(strings.ReplaceAll(string(b), "include /usr/src", "include "+root+"/usr/src")), 0o644)
}

// kbuildLibraries returns a directory that has only libelf, which the kernel's build tools need. If
// it also had the C library of the same tree, this machine's programs would not run.
func kbuildLibraries(root, programs string) (string, error) {
	found, err := filepath.Glob(filepath.Join(programs, "usr/lib/x86_64-linux-gnu/libelf.so.1"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("libelf.so.1 of the kernel's build tools: %v, %w", found, errors.Join(err, os.ErrNotExist))
	}
	dir := filepath.Join(root, "libelf")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.Symlink(found[0], filepath.Join(dir, "libelf.so.1"))
}

// unpackSiw writes siw's source files to dir and returns the names of their objects. It reads the
// archive inside the package only up to the end of siw.
func unpackSiw(ctx context.Context, deb, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	outer, err := startPipe(ctx, nil, "dpkg-deb", "--fsys-tarfile", deb)
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(outer)
	for {
		h, err := files.Next()
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(h.Name, ".tar.xz") {
			break
		}
	}
	inner, err := startPipe(ctx, files, "xz", "-dc")
	if err != nil {
		return nil, err
	}
	return copySiw(tar.NewReader(inner), dir)
}

func copySiw(source *tar.Reader, dir string) ([]string, error) {
	var objects []string
	for {
		h, err := source.Next()
		if err != nil {
			return nil, err
		}
		_, inTree, _ := strings.Cut(h.Name, "/")
		name, ours := strings.CutPrefix(inTree, siwDir)
		if !ours && len(objects) > 0 {
			slices.Sort(objects)
			return objects, nil
		}
		ext := path.Ext(name)
		if !ours || ext != ".c" && ext != ".h" || path.Base(name) != name {
			continue
		}
		content, err := io.ReadAll(source)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return nil, err
		}
		if ext == ".c" {
			objects = append(objects, strings.TrimSuffix(name, ".c")+".o")
		}
	}
}

// startPipe starts a program and returns its standard output. The program is killed when ctx is
// done.
func startPipe(ctx context.Context, in io.Reader, name string, args ...string) (io.Reader, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = cmd.Wait() })
	return out, nil
}
