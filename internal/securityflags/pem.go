package securityflags

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// maxPEM is how long a file of certificates may be: a system's list of authorities has a quarter.
const maxPEM = 1 << 20

// readKey is readPEM for a file with a private key, whose mode has to be right.
func readKey(name string) ([]byte, error) { return read(name, keyfile.CheckMode) }

// readPEM reads a file. It refuses pipes, because a pipe could block the program forever.
func readPEM(name string) ([]byte, error) {
	return read(name, func(string, fs.FileInfo) error { return nil })
}

func read(name string, check func(string, fs.FileInfo) error) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", name, keyfile.ErrNotRegular)
	case info.Size() > maxPEM:
		return nil, fmt.Errorf("%s has more than %d MiB: %w", name, maxPEM>>20, unix.EFBIG)
	}
	if err := check(name, info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxPEM)) // it may have grown
}

const beginCertificate = "-----BEGIN CERTIFICATE-----"

// whole reports whether every certificate that begins in text also ends there. A PEM reader skips
// a certificate without an end.
func whole(text []byte) bool {
	begun, read := bytes.Count(text, []byte(beginCertificate)), 0
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		if b.Type == "CERTIFICATE" {
			read++
		}
	}
	return read == begun
}
