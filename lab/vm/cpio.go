package vm

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// archive writes a cpio archive in the format of an initramfs ("newc"). Several archives, one after
// the other, make up one initramfs. The directories of a path are written before the path.
type archive struct {
	w    io.Writer
	dirs map[string]bool
	ino  int
	err  error
}

func newArchive(w io.Writer) *archive {
	return &archive{w: w, dirs: map[string]bool{"": true, ".": true}}
}

const (
	modeDir  = 0o040755
	modeFile = 0o100000
	modeLink = 0o120777
)

func (a *archive) addFile(name string, perm int, content []byte) {
	a.addEntry(name, modeFile|perm, content)
}

func (a *archive) addLink(name, target string) { a.addEntry(name, modeLink, []byte(target)) }

func (a *archive) addDir(name string) {
	if a.dirs[name] {
		return
	}
	a.dirs[name] = true
	a.addEntry(name, modeDir, nil)
}

func (a *archive) addEntry(name string, mode int, content []byte) {
	name = strings.TrimPrefix(path.Clean(name), "/")
	a.addDir(path.Dir(name))
	a.ino++
	a.writeRecord(name, a.ino, mode, content)
}

func (a *archive) writeRecord(name string, ino, mode int, content []byte) {
	if a.err != nil {
		return
	}
	// magic, inode, mode, uid, gid, links, mtime, size, device of the file (2) and of the node
	// (2), length of the name, no checksum
	header := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		ino, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
	for _, part := range []string{header + name + "\x00", string(content)} {
		if pad := -len(part) & 3; a.err == nil {
			_, a.err = io.WriteString(a.w, part+"\x00\x00\x00"[:pad])
		}
	}
}

// close ends the archive. It pads to 4 bytes, which is enough for another archive to follow.
func (a *archive) close() error {
	a.writeRecord("TRAILER!!!", 0, 0, nil)
	err := a.err
	a.err = errors.New("the archive is closed")
	return err
}
