package keyfile

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Load reads a file of keys. Nobody but its owner may be able to read or write it.
func Load(name string) ([]rdma.Credential, error) {
	list, _, err := load(name)
	return list, err
}

// load is Load, and returns what the file was when it was opened.
func load(name string) ([]rdma.Credential, fs.FileInfo, error) {
	b, info, err := contents(name)
	defer func() { clear(b[:cap(b)]) }()
	if err != nil {
		return nil, nil, err
	}
	list, err := parse(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, info, nil
}

// contents reads a file that only its owner can use.
func contents(name string) ([]byte, fs.FileInfo, error) {
	// opening a pipe would wait for somebody who writes
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s: %w", name, ErrNotRegular)
	case info.Mode().Perm()&0o077 != 0:
		return nil, nil, &ModeError{name, info.Mode()}
	}
	b, err := readAll(f)
	if err != nil {
		return b, nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, info, nil
}

// Use has a program connect with the first key of list, and all of list be who may connect to it.
// On an error the ring is as it was.
func Use(ring *rdma.Keyring, list []rdma.Credential) error {
	if len(list) == 0 {
		return ErrNoKeys
	}
	if err := ring.Accept(list...); err != nil {
		return err
	}
	return ring.Use(list[0])
}
