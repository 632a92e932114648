package keyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Load reads a file of keys. Its mode has to be right (CheckMode).
func Load(name string) ([]rdma.Credential, error) {
	b, err := readContents(name)
	defer func() { clear(b[:cap(b)]) }()
	if err != nil {
		return nil, err
	}
	list, err := parseKeys(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// readContents returns the bytes of a file of keys.
func readContents(name string) ([]byte, error) {
	f, _, err := openFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return contentsOf(f)
}

// openFile opens a file of keys. how is os.O_RDONLY or os.O_RDWR.
func openFile(name string, how int) (*os.File, fs.FileInfo, error) {
	// opening a pipe would wait for a writer
	f, err := os.OpenFile(name, how|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s: %w", name, ErrNotRegular)
	default:
		err = CheckMode(name, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func contentsOf(f *os.File) ([]byte, error) {
	b, err := readAll(f)
	if err != nil {
		return b, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return b, nil
}

// CheckMode returns a *ModeError if others can use a file with keys, of this package or of
// certificates: if others than its owner can write it, or others than its owner and its group can
// read it. The group may read a file that is root's: so Kubernetes and packages give a service its
// keys.
func CheckMode(name string, info fs.FileInfo) error {
	allowed := fs.FileMode(0o700)
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid == 0 {
		allowed = 0o740
	}
	if info.Mode().Perm()&^allowed != 0 {
		return &ModeError{name, info.Mode()}
	}
	return nil
}

// Use sets the first key of list as the one that the program connects with, and accepts peers with
// any key of list. On an error the ring is unchanged.
func Use(ring *rdma.Keyring, list []rdma.Credential) error {
	if len(list) == 0 {
		return ErrNoKeys
	}
	if err := ring.Accept(list...); err != nil {
		return err
	}
	return ring.Use(list[0])
}
