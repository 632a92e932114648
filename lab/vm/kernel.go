package vm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kernelPackages names one kernel in Debian's archive.
type kernelPackages struct {
	release string // as in uname -r
	version string // the version of every package built with it
	headers []string
}

var numbers = regexp.MustCompile(`\d+`)

// compareReleases compares releases by the numbers in them. The newer one comes first.
func compareReleases(a, b string) int {
	x, y := numbers.FindAllString(strings.TrimSuffix(a, "-amd64"), -1), numbers.FindAllString(strings.TrimSuffix(b, "-amd64"), -1)
	return -slices.CompareFunc(x, y, func(a, b string) int {
		i, _ := strconv.Atoi(a)
		j, _ := strconv.Atoi(b)
		return cmp.Compare(i, j)
	})
}

// findKernel returns the newest kernel of a line, such as 6.1, for which the mirror has the image,
// headers and source.
func (a *apt) findKernel(ctx context.Context, line string) (kernelPackages, error) {
	names, err := a.runWithConfig(ctx, "", "apt-cache", "pkgnames", "linux-headers-"+line+".")
	if err != nil {
		return kernelPackages{}, err
	}
	var releases []string
	stock := regexp.MustCompile(`^linux-headers-(` + regexp.QuoteMeta(line) + `\.[0-9][0-9.]*([-+][0-9a-z.]+)?-amd64)$`)
	for name := range strings.Lines(names) {
		// The cloud flavour has no InfiniBand.
		if m := stock.FindStringSubmatch(strings.TrimSpace(name)); m != nil && !strings.Contains(m[1], "cloud") {
			releases = append(releases, m[1])
		}
	}
	slices.SortFunc(releases, compareReleases)
	for _, r := range releases {
		k := kernelPackages{release: r}
		image, header, source := "linux-image-"+r, "linux-headers-"+r, "linux-source-"+line
		v, err := a.packageVersions(ctx, image, header, source)
		if err != nil {
			return k, err
		}
		for _, version := range v[header] {
			if !slices.Contains(v[image], version) || !slices.Contains(v[source], version) {
				continue
			}
			k.version = version
			k.headers, err = a.headerPackages(ctx, header+"="+version)
			return k, err
		}
	}
	return kernelPackages{}, errNoKernel
}

var errNoKernel = errors.New("the configured Debian mirror has no such kernel")

var dependency = regexp.MustCompile(`\b(linux-headers-\S+-common|linux-kbuild-[^\s,]+)`)

// headerPackages returns the packages that are needed to build external modules.
func (a *apt) headerPackages(ctx context.Context, pkg string) ([]string, error) {
	out, err := a.runWithConfig(ctx, "", "apt-cache", "show", pkg)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		if depends, ok := strings.CutPrefix(line, "Depends: "); ok {
			return append([]string{pkg}, dependency.FindAllString(depends, -1)...), nil
		}
	}
	return nil, fmt.Errorf("%s depends on nothing", pkg)
}

// uncompressKernel writes the kernel in a bzImage to path, as an ELF file that QEMU can enter by
// PVH.
func uncompressKernel(ctx context.Context, bzImage, path string) error {
	b, err := os.ReadFile(bzImage)
	if err != nil {
		return err
	}
	// Documentation/arch/x86/boot.rst: setup_sects at 0x1f1, payload_offset and payload_length at
	// 0x248, from the protected-mode code on.
	if len(b) < 0x250 || string(b[0x202:0x206]) != "HdrS" {
		return fmt.Errorf("%s is no bzImage", bzImage)
	}
	start := (int(b[0x1f1])+1)*512 + int(binary.LittleEndian.Uint32(b[0x248:]))
	end := start + int(binary.LittleEndian.Uint32(b[0x24c:]))
	if end > len(b) || end-start < 8 {
		return fmt.Errorf("the payload of %s is at %d to %d of %d bytes", bzImage, start, end, len(b))
	}
	payload := b[start : end-4] // the last 4 bytes are the unpacked size
	var cmd *exec.Cmd
	switch {
	case bytes.HasPrefix(payload, []byte("\xfd7zXZ\x00")):
		cmd = exec.CommandContext(ctx, "xz", "-dc")
	case bytes.HasPrefix(payload, []byte("\x28\xb5\x2f\xfd")):
		cmd = exec.CommandContext(ctx, "zstd", "-dc")
	default:
		return fmt.Errorf("the payload of %s begins with %x: neither xz nor zstd", bzImage, payload[:8])
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(payload), f, &said
	if err := errors.Join(cmd.Run(), f.Close()); err != nil {
		return fmt.Errorf("unpacking %s: %w: %s", bzImage, err, said.String())
	}
	return nil
}

// packKernel writes the image and the modules of the newest kernel of a line into dir, and returns
// its release.
func packKernel(ctx context.Context, a *apt, line, scratch, dir string, logf func(string, ...any)) (string, error) {
	k, err := a.findKernel(ctx, line)
	if err != nil {
		return "", err
	}
	logf("vm: fetching kernel %s (Debian %s), its headers and its source", k.release, k.version)
	root := filepath.Join(scratch, "kernel")
	if err := a.unpackPackages(ctx, root, append(k.headers, "linux-image-"+k.release+"="+k.version)...); err != nil {
		return "", err
	}
	debs, err := a.downloadPackages(ctx, "linux-source-"+line+"="+k.version)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(debs[0])) }()
	modules := filepath.Join(root, "lib/modules", k.release)
	logf("vm: compiling siw for %s", k.release)
	if err := buildSiw(ctx, debs[0], root, k.release, filepath.Join(scratch, "siw"), modules); err != nil {
		return "", err
	}
	if err := uncompressKernel(ctx, filepath.Join(root, "boot/vmlinuz-"+k.release), filepath.Join(dir, "vmlinux")); err != nil {
		return "", err
	}
	return k.release, packModules(ctx, modules, k.release, filepath.Join(dir, "modules.cpio"))
}
