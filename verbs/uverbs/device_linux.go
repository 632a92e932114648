package uverbs

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// query fills in what the device is and can.
func (d *device) query(guid uint64) error {
	resp, err := call[ask, queryDeviceResp](d.k, cmdQueryDevice, ask{})
	if err != nil {
		return fmt.Errorf("query_device: %w", err)
	}
	d.caps = *resp
	if got := binary.BigEndian.Uint64(resp.NodeGUID[:]); guid != 0 && got != guid {
		return fmt.Errorf("is another device now, %#x instead of %#x: %w", got, guid, unix.ENODEV)
	}
	switch resp.VendorID {
	case rxeVendor:
		d.attr = verbs.DeviceAttr{MaxSGE: rxeMaxSGE, MaxInline: rxeInline, Immediate: true, Atomics: resp.AtomicCap != 0}
	case siwVendor:
		d.siw = true
		d.attr = verbs.DeviceAttr{MaxSGE: siwMaxSGE, MaxInline: siwMaxInline, NotifiesAll: true, OverlooksFirst: true}
	default:
		return fmt.Errorf("a device of vendor %#x, neither rxe nor siw: %w", resp.VendorID, verbs.ErrNotSupported)
	}
	d.attr.MaxQP = int(resp.MaxQP)
	d.attr.MaxQPWR = min(int(resp.MaxQPWR), int(resp.MaxCQE)/2)
	d.attr.MaxSGE = min(d.attr.MaxSGE, int(resp.MaxSGE))
	d.attr.MaxRDAtom = int(min(resp.MaxQPRdAtom, 255))
	port, err := call[queryPort, queryPortResp](d.k, cmdQueryPort, queryPort{PortNum: 1})
	if err != nil {
		return fmt.Errorf("query_port: %w", err)
	}
	d.attr.MaxMessage = port.MaxMsgSz
	if mtu := port.ActiveMTU; !d.siw && mtu >= 1 && mtu <= portMTU4096 {
		d.attr.MaxDatagram = 128 << mtu
	}
	return nil
}

const (
	// rxeInline is the inline data of a send queue's elements: as much as fits beside the rest
	// into 512 bytes, in round numbers.
	rxeInline = 256
	rxeMaxSGE = rxeInline / 16
)

// Name is the device's name.
func (d *device) Name() string { return d.name }

// IWARP is true for siw.
func (d *device) IWARP() bool { return d.siw }

// Attr gives the device's limits.
func (d *device) Attr() verbs.DeviceAttr { return d.attr }

// PD is the domain of whatever names none.
func (d *device) PD() verbs.PD { return d.pd }

// handle makes x known to events.
func (d *device) handle(x any) uint64 {
	d.lastHandle++
	d.handles[d.lastHandle] = x
	return d.lastHandle
}

// later has Run called at the end of the turn.
func (d *device) later() {
	if !d.deferred && !d.closed {
		d.deferred = true
		d.loop.Defer(d)
	}
}

// gone is the error of calls on a device that is no more.
func (d *device) gone() error {
	switch {
	case d.lost != nil:
		return fmt.Errorf("uverbs: %s is gone: %w", d.name, d.lost)
	case d.closed:
		return fmt.Errorf("uverbs: %s is closed: %w", d.name, unix.ENODEV)
	}
	return nil
}
