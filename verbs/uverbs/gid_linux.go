package uverbs

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// gidIndex returns the index of the port's RoCE v2 GID that a datagram was sent to. For a group it
// is that of the port's first GID of the same family. Results are cached until the kernel reports a
// change. A report that is not read yet counts too: the index may belong to another address by now.
func (d *device) gidIndex(gid [16]byte) (uint8, error) {
	if len(d.gids) > 0 && isReadable(d.channels.Async) {
		clear(d.gids)
	}
	if i, ok := d.gids[gid]; ok {
		return i, nil
	}
	name, err := os.ReadFile(filepath.Join(sysClass, d.file, "ibdev")) // may have changed
	if err != nil {
		return 0, fmt.Errorf("uverbs: %s: %w", d.name, err)
	}
	i, err := findGID(filepath.Join("/sys/class/infiniband", strings.TrimSpace(string(name)), "ports/1"), gid)
	if err != nil {
		return 0, fmt.Errorf("uverbs: %s: %w", d.name, err)
	}
	if d.gids == nil || len(d.gids) >= maxGIDs {
		d.gids = make(map[[16]byte]uint8)
	}
	d.gids[gid] = i
	return i, nil
}

// isReadable reports whether there is an event to read, and true when in doubt.
func isReadable(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n != 0 || err != nil
}

// maxGIDs limits the cache.
const maxGIDs = 256

func findGID(port string, want [16]byte) (uint8, error) {
	group := isGroup(want)
	for i := range math.MaxUint8 + 1 {
		name := strconv.Itoa(i)
		gid, ok := readGID(filepath.Join(port, "gids", name))
		if !ok || gid != want && (!group || isIPv4(gid) != isIPv4(want)) {
			continue
		}
		if kind, err := os.ReadFile(filepath.Join(port, "gid_attrs/types", name)); err == nil && strings.TrimSpace(string(kind)) == "RoCE v2" {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("no GID %x: %w", want, unix.EINVAL)
}

// readGID reads a file of eight groups of four hexadecimal digits. Zeros are an unused entry.
func readGID(path string) (gid [16]byte, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return gid, false
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), ":", ""))
	return gid, err == nil && copy(gid[:], raw) == len(gid) && gid != [16]byte{}
}

func isIPv4(gid [16]byte) bool { return [12]byte(gid[:12]) == [12]byte{10: 0xff, 11: 0xff} }

func isGroup(gid [16]byte) bool { return gid[0] == 0xff || isIPv4(gid) && gid[12]>>4 == 0xe }
