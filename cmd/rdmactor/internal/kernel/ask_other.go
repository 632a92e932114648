//go:build !linux

package kernel

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Devices returns ENOSYS: only Linux has such devices.
func Devices() ([]string, error) { return nil, errElsewhere() }

// IDs returns ENOSYS, as Devices does.
func IDs() ([]ID, bool, error) { return nil, false, errElsewhere() }

func errElsewhere() error {
	return fmt.Errorf("the kernel's table is Linux's, and this is %s: %w", runtime.GOOS, unix.ENOSYS)
}
