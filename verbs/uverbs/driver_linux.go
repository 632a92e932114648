package uverbs

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/nldev"
)

// driverOf asks the kernel which driver a device has, 0 if it does not report it (before 5.3).
// Opening the device does not show it: some drivers (mlx5, irdma) make a context for their library
// only.
func driverOf(name string) uint32 {
	devices, _ := nldev.Devices()
	i := slices.IndexFunc(devices, func(d nldev.Device) bool { return d.Name == name })
	if i < 0 {
		return 0
	}
	c, err := nldev.DataFile(devices[i].Index)
	if err != nil {
		return 0
	}
	return c.Driver
}

// isDriven reports whether this package drives a driver's devices, as far as that is known.
func isDriven(driver uint32) bool {
	return driver == 0 || driver == nldev.DriverRXE || driver == nldev.DriverSIW
}

// refusedContext makes an *OtherDeviceError of the error of a context that was not made. rxe and
// siw make theirs for everybody.
func refusedContext(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return &OtherDeviceError{Err: err}
	}
	return err
}
