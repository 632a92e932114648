package uverbs

import (
	"fmt"

	"github.com/rdmactor/rdmactor/verbs"
)

// OtherDeviceError reports a device that is neither rxe nor siw. Its data path needs libibverbs,
// which the module native of this project uses. errors.Is finds verbs.ErrNotSupported.
type OtherDeviceError struct {
	Driver string // the kernel's name of it, "" if unknown
	Vendor uint32 // the device's vendor ID, 0 if it was not queried
	Err    error  // the kernel's refusal to open the device, or nil
}

// Error names the package to import.
func (e *OtherDeviceError) Error() string {
	what := "a device"
	switch {
	case e.Driver != "":
		what += " of driver " + e.Driver
	case e.Vendor != 0:
		what += fmt.Sprintf(" of vendor %#x", e.Vendor)
	}
	why := verbs.ErrNotSupported
	if e.Err != nil {
		why = e.Err
	}
	return fmt.Sprintf("%s, neither rxe nor siw: import _ %q for its data path: %v", what, "github.com/rdmactor/rdmactor/native", why)
}

// Unwrap returns verbs.ErrNotSupported.
func (e *OtherDeviceError) Unwrap() error { return verbs.ErrNotSupported }
