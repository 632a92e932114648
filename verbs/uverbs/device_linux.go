package uverbs

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// queryDevice sets the device's identity and capabilities.
func (d *device) queryDevice(guid uint64) (err error) {
	if d.caps, err = d.hw.Query(); err != nil {
		return err
	}
	if d.caps.GUID != guid && guid != 0 {
		return fmt.Errorf("is another device now, %#x instead of %#x: %w", d.caps.GUID, guid, unix.ENODEV)
	}
	d.attr, d.siw = d.caps.Attr, d.caps.Siw
	d.attr.QPAccess = !d.caps.IWARP // see queuePair.SetAccess
	return nil
}

// Name returns the device's name.
func (d *device) Name() string { return d.name }

// IWARP reports whether the device is an RNIC.
func (d *device) IWARP() bool { return d.caps.IWARP }

// Attr returns the device's limits.
func (d *device) Attr() verbs.DeviceAttr { return d.attr }

// Caps returns the device's capabilities, for this project's tools.
func (d *device) Caps() hca.Caps { return d.caps }

// PD returns the default domain, for objects created without one.
func (d *device) PD() verbs.PD { return d.pd }

// addHandle registers x for events.
func (d *device) addHandle(x any) uint64 {
	d.lastHandle++
	d.handles[d.lastHandle] = x
	return d.lastHandle
}

// deferRun schedules Run for the end of the turn.
func (d *device) deferRun() {
	if !d.deferred && !d.closed {
		d.deferred = true
		d.loop.Defer(d)
	}
}

// goneError returns the error of calls on a device that was lost or closed; nil: neither.
func (d *device) goneError() error {
	switch {
	case d.lost != nil:
		return fmt.Errorf("uverbs: %s is gone: %w", d.name, d.lost)
	case d.closed:
		return fmt.Errorf("uverbs: %s is closed: %w", d.name, unix.ENODEV)
	}
	return nil
}
