package vm

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

var (
	programPackages = []string{
		"rdmacm-utils", "ibverbs-utils", "ibverbs-providers", "perftest", "iproute2", "strace", "bash", "dash", "busybox-static", "coreutils",
		"findutils", "util-linux", "time", "libgcc-s1",
	}
	// Programs that run other programs are the real ones. Busybox's shell, timeout or time would
	// run busybox's ip instead of iproute2's.
	programs = []string{
		"busybox", "dash", "bash", "timeout", "env", "nohup", "nice", "time", "xargs", "find", "setsid", "unshare", "nsenter", "ip", "rdma", "ss", "tc", "strace",
		"rping", "ucmatose", "udaddy", "mckey", "cmtime", "rdma_server", "rdma_client", "rdma_xserver", "rdma_xclient", "rstream", "riostream",
		"ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ibv_srq_pingpong", "ibv_ud_pingpong",
		"ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
	}
	// Libraries that programs load by name: providers of libibverbs, libgcc_s, which pthread_exit
	// needs, and the libraries that Go programs with cgo name besides libc.
	loaded = []string{
		"libibverbs/librxe-rdmav34.so", "libibverbs/libsiw-rdmav34.so", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0",
	}
	configs = []string{"etc/libibverbs.d/rxe.driver", "etc/libibverbs.d/siw.driver"}
	binDirs = []string{"bin", "sbin", "usr/bin", "usr/sbin"}
	libDirs = []string{"usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"}
)

// packPrograms writes an archive of the guest's programs, and the libraries that they need, to
// path.
func packPrograms(ctx context.Context, a *apt, scratch, path string) error {
	root := filepath.Join(scratch, "programs")
	if err := a.unpackClosure(ctx, root, programPackages...); err != nil {
		return err
	}
	tree, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer tree.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	p := &packer{root: tree, archive: newArchive(f), packed: map[string]bool{}}
	for _, name := range programs {
		p.addProgram(name)
	}
	for _, name := range loaded {
		p.addLibrary(name)
	}
	for _, name := range configs {
		p.addFile(name, name, 0o644)
	}
	p.archive.addLink("bin/sh", "../usr/bin/dash")
	p.archive.addLink("bin/bash", "../usr/bin/bash")
	p.archive.addLink("bin/busybox", "../usr/bin/busybox")
	return errors.Join(p.err, p.archive.close(), f.Close())
}

// packer copies files of a directory tree into an archive, each once. It keeps its first error. It
// does not follow links in packages that lead out of the tree, because they lead to programs of
// this machine.
type packer struct {
	root    *os.Root
	archive *archive
	packed  map[string]bool
	err     error
}

// findFile returns the path of name in the first of dirs that has it. The path is relative to root.
func (p *packer) findFile(dirs []string, name string) string {
	i := slices.IndexFunc(dirs, func(d string) bool {
		_, err := p.root.Stat(filepath.Join(d, name))
		return err == nil
	})
	if i < 0 {
		p.fail(fmt.Errorf("no package has %s: %w", name, fs.ErrNotExist))
		return ""
	}
	return filepath.Join(dirs[i], name)
}

func (p *packer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *packer) addProgram(name string) {
	if found := p.findFile(binDirs, name); found != "" {
		p.addELF(found, "usr/bin/"+name)
	}
}

func (p *packer) addLibrary(name string) {
	if name == "ld-linux-x86-64.so.2" { // programs name it with its directory
		p.addELF(p.findFile(libDirs, name), "lib64/"+name)
	} else if found := p.findFile(libDirs, name); found != "" {
		p.addELF(found, found)
	}
}

// addELF packs a program or library, and the libraries that it needs.
func (p *packer) addELF(from, to string) {
	if from == "" || p.packed[to] {
		return
	}
	content := p.addFile(from, to, 0o755)
	e, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		p.fail(fmt.Errorf("%s: %w", from, err))
		return
	}
	libs, err := e.ImportedLibraries()
	if err != nil {
		p.fail(err)
	}
	if e.Section(".interp") != nil {
		libs = append(libs, "ld-linux-x86-64.so.2")
	}
	for _, lib := range libs {
		p.addLibrary(lib)
	}
}

func (p *packer) addFile(from, to string, perm int) []byte {
	p.packed[to] = true
	content, err := p.root.ReadFile(from)
	if err != nil {
		p.fail(err)
	}
	p.archive.addFile(to, perm, content)
	return content
}
