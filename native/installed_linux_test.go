//go:build linux && (amd64 || arm64)

package native

import (
	"errors"
	"slices"
	"testing"
)

// TestInstalled: there is a library with a name, or an error with a remedy.
func TestInstalled(t *testing.T) {
	l, err := Installed()
	var missing *LibraryError
	var call *CallError
	switch {
	case errors.As(err, &missing) && l.File == "" && missing.Remedy != "":
	case errors.As(err, &call) && l.File != "": // a kernel without RDMA
	case err == nil && l.File != "":
	default:
		t.Errorf("%+v, %v", l, err)
	}
}

// TestLoadedDrivers finds the drivers' files, once each, among other libraries.
func TestLoadedDrivers(t *testing.T) {
	got := loadedDrivers([]byte(`
7f0000000000-7f0000001000 r-xp 00000000 fe:00 1 /usr/lib/x86_64-linux-gnu/libmlx5.so.1.24.44.0
7f0000001000-7f0000002000 r--p 00000000 fe:00 1 /usr/lib/x86_64-linux-gnu/libmlx5.so.1.24.44.0
7f0000002000-7f0000003000 r-xp 00000000 fe:00 2 /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so
7f0000003000-7f0000004000 r-xp 00000000 fe:00 3 /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0
7f0000004000-7f0000005000 rw-p 00000000 00:00 0
`))
	if want := []string{"libmlx5.so.1.24.44.0", "librxe-rdmav34.so"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
