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
	"strings"
)

// modules are the kernel modules that the guest can load. Their dependencies are added.
var modules = []string{
	"crc32_generic", "crc32c_generic", "libcrc32c", "virtio_pci", "virtio_console", "virtio_net", "9p", "9pnet_virtio",
	"veth", "dummy", "bridge", "8021q", "sch_netem", "rdma_ucm", "ib_umad", "rdma_rxe", "siw", "nodeguid",
}

// packModules writes an archive to path. It has the modules, uncompressed, and the tables that
// modprobe reads.
func packModules(ctx context.Context, dir, release, path string) error {
	files, err := moduleFiles(dir)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	m := &modulePacker{archive: newArchive(f), files: files, dir: "lib/modules/" + release + "/", packed: map[string][]string{}}
	for _, name := range modules {
		if _, err := m.addModule(ctx, name); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	m.archive.addFile(m.dir+"modules.dep", 0o644, m.dep.Bytes())
	m.archive.addFile(m.dir+"modules.alias", 0o644, m.alias.Bytes())
	return errors.Join(m.archive.close(), f.Close())
}

// moduleFiles maps the names of modules to their files. The names of builtin modules map to "".
func moduleFiles(dir string) (map[string]string, error) {
	files := map[string]string{}
	builtin, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(builtin)) {
		files[moduleName(strings.TrimSpace(line))] = ""
	}
	return files, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".ko") || strings.HasSuffix(path, ".ko.xz") {
			files[moduleName(path)] = path
		}
		return err
	})
}

func moduleName(path string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".xz"), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

type modulePacker struct {
	archive    *archive
	files      map[string]string
	dir        string
	packed     map[string][]string // by module name: its dependencies, in loading order
	dep, alias bytes.Buffer
}

// addModule adds a module to the archive, after its dependencies, and returns these.
func (m *modulePacker) addModule(ctx context.Context, name string) ([]string, error) {
	if needs, ok := m.packed[name]; ok {
		return needs, nil
	}
	path, known := m.files[name]
	if !known {
		return nil, fmt.Errorf("the kernel has no module %s", name)
	}
	if path == "" {
		m.packed[name] = nil
		return nil, nil
	}
	content, err := readModule(ctx, path)
	if err != nil {
		return nil, err
	}
	info, err := moduleInfo(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var needs []string
	for _, d := range strings.Split(strings.Join(info["depends"], ","), ",") {
		if d == "" {
			continue
		}
		d = strings.ReplaceAll(d, "-", "_")
		deeper, err := m.addModule(ctx, d)
		if err != nil {
			return nil, err
		}
		for _, n := range append(slices.Clone(deeper), d) {
			if m.files[n] != "" && !slices.Contains(needs, n) {
				needs = append(needs, n)
			}
		}
	}
	m.packed[name] = needs
	m.archive.addFile(m.dir+name+".ko", 0o644, content)
	fmt.Fprintf(&m.dep, "%s.ko:", name)
	for _, n := range slices.Backward(needs) { // modprobe loads the last one first
		fmt.Fprintf(&m.dep, " %s.ko", n)
	}
	fmt.Fprintln(&m.dep)
	for _, alias := range info["alias"] {
		fmt.Fprintf(&m.alias, "alias %s %s\n", alias, name)
	}
	return needs, nil
}

// readModule returns a module without two parts that cost loading time under TCG: the signature,
// which strip cuts off, and the types for BPF.
func readModule(ctx context.Context, path string) ([]byte, error) {
	if strings.HasSuffix(path, ".xz") {
		if _, err := runTool(ctx, "", nil, "xz", "-d", path); err != nil {
			return nil, err
		}
		path = strings.TrimSuffix(path, ".xz")
	}
	if _, err := runTool(ctx, "", nil, "strip", "-g", "-R", ".BTF", "-R", ".BTF.base", path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// moduleInfo returns the key=value strings in a module's section for them.
func moduleInfo(content []byte) (map[string][]string, error) {
	e, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	section := e.Section(".modinfo")
	if section == nil {
		return nil, errors.New("no section .modinfo")
	}
	b, err := section.Data()
	if err != nil {
		return nil, err
	}
	info := map[string][]string{}
	for _, s := range strings.Split(string(b), "\x00") {
		if key, value, ok := strings.Cut(s, "="); ok {
			info[key] = append(info[key], value)
		}
	}
	return info, nil
}
