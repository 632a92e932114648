package keyfile

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// LineError is a line that is no key. It does not quote the line, which may have a key in it.
// errors.Is: EINVAL.
type LineError struct {
	Line int // the first one is 1
	What string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// Unwrap gives the errno.
func (e *LineError) Unwrap() error { return unix.EINVAL }

// ModeError is a file that others can use (CheckMode). errors.Is: EACCES, and fs.ErrPermission.
type ModeError struct {
	Name string
	Mode fs.FileMode
}

func (e *ModeError) Error() string {
	return fmt.Sprintf("others can use the keys of %s, whose mode is %04o: chmod 600 %[1]s, and make new keys if somebody may have read it", e.Name, e.Mode.Perm())
}

// Unwrap gives the errno.
func (e *ModeError) Unwrap() error { return unix.EACCES }

// The reasons why a file is no list of keys.
var (
	// ErrNoKeys: there are no keys in it.
	ErrNoKeys = fmt.Errorf("it has no keys: %w", unix.EINVAL)
	// ErrTooLarge: it has more than 4 MiB.
	ErrTooLarge = fmt.Errorf("a list of keys has at most %d MiB: %w", maxFile>>20, unix.EFBIG)
	// ErrNotRegular: it is a directory, a pipe or a device.
	ErrNotRegular = fmt.Errorf("not a regular file: %w", unix.EINVAL)
)
