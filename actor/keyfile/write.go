package keyfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Generate makes a key of an identity: 32 random bytes. An error is EINVAL's.
func Generate(identity string) (rdma.Credential, error) {
	if what := checkIdentity(identity); what != "" {
		return rdma.Credential{}, fmt.Errorf("%s: %w", what, unix.EINVAL)
	}
	c := rdma.Credential{Identity: identity}
	_, _ = rand.Read(c.Key[:]) // never fails: it ends the program instead
	return c, nil
}

// Write writes lines that Read reads: the keys are in them.
func Write(w io.Writer, list ...rdma.Credential) error {
	b, err := formatKeys(list)
	defer clear(b)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// formatKeys returns the lines of a list.
func formatKeys(list []rdma.Credential) ([]byte, error) {
	size := 0
	for i := range list {
		size += len(list[i].Identity) + len(":\n") + encoding.EncodedLen(keyLen)
	}
	b := make([]byte, 0, size) // large enough, because append would leave copies behind
	for i := range list {
		if what := checkIdentity(list[i].Identity); what != "" {
			return b, fmt.Errorf("%s: %w", what, unix.EINVAL)
		}
		b = append(append(b, list[i].Identity...), ':')
		b = append(encoding.AppendEncode(b, list[i].Key[:]), '\n')
	}
	return b, nil
}

// Create makes a file of keys that only its owner can read. A file that is there is left as it is,
// and an error: fs.ErrExist.
func Create(name string, list ...rdma.Credential) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(Write(f, list...), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// Add puts a key behind those of a file, whose owner, group and mode stay. A program that reads the
// file at that time sees all of the new file or all of the old one. Calls of Add take turns, also
// those of several processes, unless the file system has no locks: see Limitations.
func Add(name string, c rdma.Credential) (err error) {
	// the new file takes the place of the file, not of a link to it
	if name, err = filepath.EvalSymlinks(name); err != nil {
		return err
	}
	f, info, err := openLocked(name)
	if err != nil {
		return err
	}
	defer f.Close() // this unlocks it
	b, err := contentsOf(f)
	defer func() { clear(b[:cap(b)]) }()
	if err != nil {
		return err
	}
	line, err := formatKeys([]rdma.Credential{c})
	defer clear(line)
	if err != nil {
		return err
	}
	all := append(make([]byte, 0, len(b)+len("\n")+len(line)), b...)
	defer clear(all[:cap(all)])
	if len(b) > 0 && !bytes.HasSuffix(b, []byte("\n")) {
		all = append(all, '\n')
	}
	all = append(all, line...)
	list, err := parseKeys(all)
	if err != nil {
		return fmt.Errorf("%s would not be a list of keys any more: %w", name, err)
	}
	clear(list)
	return replaceFile(name, info, all)
}

var flock = unix.Flock // tests have others

// openLocked opens a file for the only one that may replace it.
func openLocked(name string) (*os.File, fs.FileInfo, error) {
	for {
		// NFS wants a descriptor that may write; a file that its owner may only read has none
		f, info, err := openFile(name, os.O_RDWR)
		if errors.Is(err, fs.ErrPermission) {
			f, info, err = openFile(name, os.O_RDONLY)
		}
		if err != nil {
			return nil, nil, err
		}
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = flock(int(f.Fd()), unix.LOCK_EX)
		}
		if errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
			err = nil // without locks it is the program's matter that calls of Add take turns
		}
		var now fs.FileInfo
		if err == nil {
			now, err = os.Stat(name)
		}
		if err == nil && os.SameFile(info, now) {
			return f, info, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, nil, fmt.Errorf("lock %s: %w", name, err)
		}
		// another file has replaced it since, and has to be locked
	}
}

// replaceFile puts a new file into the place of name, with the owner, the group and the mode of the
// old one.
func replaceFile(name string, old fs.FileInfo, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".key-*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, copyAttributes(f, old), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// copyAttributes sets f's owner, group and mode to those of another file.
func copyAttributes(f *os.File, other fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, _ := info.Sys().(*syscall.Stat_t)
	was, ok := other.Sys().(*syscall.Stat_t)
	if ok && (is.Uid != was.Uid || is.Gid != was.Gid) {
		if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return fmt.Errorf("keep the owner of the file: %w", err)
		}
	}
	return f.Chmod(other.Mode().Perm()) // after Chown, which is for the group that may read it
}
