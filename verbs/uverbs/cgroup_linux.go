package uverbs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hostlimits"
)

// CgroupError reports that a control group allows this process no further objects on a device.
// errors.Is finds the kernel's errno, which is EAGAIN.
type CgroupError struct {
	Device    string
	File      string // rdma.max of the control group
	Resource  string // hca_handle: opened devices; hca_object: objects made on them
	Max, Used uint64 // at the time of the error; Used counts every process of the group
	Err       error  // the kernel's error
}

// Error describes the remedy.
func (e *CgroupError) Error() string {
	return fmt.Sprintf("%v, because %s of %s in %s is %d, and %d are used: raise it (`echo %s %s=max > %s`)",
		e.Err, e.Resource, e.Device, e.File, e.Max, e.Used, e.Device, e.Resource, e.File)
}

// Unwrap returns the kernel's errno.
func (e *CgroupError) Unwrap() error { return e.Err }

const (
	handles = "hca_handle"
	objects = "hca_object"
)

// explainLimit turns err into a *CgroupError if the control group's limit of objects explains it.
func (d *device) explainLimit(err error) error {
	return cgroupError(os.DirFS("/"), d.name, objects, err)
}

// cgroupError turns err into a *CgroupError if a limit of the resource explains it.
func cgroupError(root fs.FS, device, resource string, err error) error {
	if !errors.Is(err, unix.EAGAIN) {
		return err
	}
	for _, l := range hostlimits.RDMA(root, device) {
		if l.Resource == resource && l.Left() == 0 {
			return &CgroupError{Device: device, File: l.Where, Resource: resource, Max: l.Max, Used: l.Used, Err: err}
		}
	}
	return err
}
