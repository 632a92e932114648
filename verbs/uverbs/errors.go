package uverbs

import (
	"fmt"

	"github.com/rdmactor/rdmactor/verbs"
)

// OtherDeviceError says that a device is neither rxe nor siw. Its data path needs libibverbs, which
// the module native of this project uses. errors.Is finds verbs.ErrNotSupported.
type OtherDeviceError struct {
	Vendor uint32 // the device's
}

// Error says what to import.
func (e *OtherDeviceError) Error() string {
	return fmt.Sprintf("a device of vendor %#x, neither rxe nor siw: import _ %q for its data path: %v",
		e.Vendor, "github.com/rdmactor/rdmactor/native", verbs.ErrNotSupported)
}

// Unwrap gives verbs.ErrNotSupported.
func (e *OtherDeviceError) Unwrap() error { return verbs.ErrNotSupported }
