package uverbs

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// device is an open device on one loop.
type device struct {
	loop *eventloop.Loop
	name string // as it was called when it was opened
	file string // its name in sysClass
	k    *kernel
	siw  bool // else rxe
	attr verbs.DeviceAttr
	caps queryDeviceResp
	pd   *domain

	async, comp       int // fds of events; -1 before
	asyncReg, compReg *eventloop.Registration

	handles    map[uint64]any // by the handle that the kernel tells events of: *cqPart, *queuePair, *sharedQueue
	lastHandle uint64
	stags      uint8
	gids       map[[16]byte]uint8
	qps        map[uint32]*queuePair
	domains    map[*domain]struct{}
	cqs        map[*completionQueue]struct{}
	compEvent  compEventDesc
	asyncEvent asyncEventDesc

	dirty    []*queuePair       // have sends that the kernel does not know of
	due      []*completionQueue // are to be told, or armed
	low      []*sharedQueue     // are to be told that they are low
	spare    []*queuePair
	spareDue []*completionQueue
	deferred bool  // Run will come at the end of the turn
	lost     error // the device is gone
	closed   bool
}

// query fills in what the device is and can.
func (d *device) query(guid uint64) error {
	resp, err := call[queryDevice, queryDeviceResp](d.k, cmdQueryDevice, queryDevice{})
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
		d.attr = verbs.DeviceAttr{MaxSGE: siwMaxSGE, MaxInline: siwMaxInline, NotifiesAll: true}
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
	// rxeInline is the inline data of a send queue's elements: as much as fits beside the rest into 512 bytes, in round numbers.
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

// Alloc makes a memory region in the device's own domain.
func (d *device) Alloc(n int, access verbs.Access) (*verbs.MR, error) { return d.pd.Alloc(n, access) }

// closeWait is how long Close waits for the kernel.
const closeWait = 2 * time.Second

// Close closes the device. The kernel gives back what was made on it when its fd is closed, and deregisters its memory; the queues' maps
// are given back here. Memory that was not freed stays mapped until Free, for whoever still reads it.
func (d *device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	d.lose(unix.ENODEV)
	var errs []error
	for _, r := range []*eventloop.Registration{d.compReg, d.asyncReg} {
		if r != nil {
			errs = append(errs, r.Remove())
		}
	}
	for _, q := range d.qps {
		q.forget()
	}
	for _, h := range d.handles {
		errs = append(errs, h.(closer).release())
	}
	for p := range d.domains {
		p.gone = true
	}
	clear(d.handles)
	for _, fd := range []int{d.comp, d.async} {
		if fd >= 0 {
			errs = append(errs, os.NewSyscallError("close", unix.Close(fd)))
		}
	}
	errs = append(errs, d.k.close(closeWait))
	d.dirty, d.due, d.low = nil, nil, nil
	return firstError(errs...)
}

// closer gives maps back.
type closer interface{ release() error }

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

// Run ends a turn: what was posted is announced, who has something to hear is told, and who has heard everything is armed.
func (d *device) Run(int) bool {
	d.deferred = false
	d.ring()
	low := d.low
	d.low = nil
	for _, s := range low {
		s.tell()
	}
	due := d.due
	d.due = d.spareDue[:0]
	for i, q := range due {
		due[i] = nil
		q.settle()
	}
	d.spareDue = due
	return false
}

// ring announces what was posted. A device that is asked may complete it at once.
func (d *device) ring() {
	dirty := d.dirty
	d.dirty = d.spare[:0]
	for i, q := range dirty {
		dirty[i] = nil
		q.announce()
	}
	d.spare = dirty
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

// fail is an answer of the kernel's that only a device which is no more gives.
func (d *device) fail(err error) {
	d.lose(err)
	for _, r := range []*eventloop.Registration{d.compReg, d.asyncReg} {
		if r != nil {
			_ = r.Remove() // a closed channel stays readable
		}
	}
}

// lose ends everything after the device has left: what is outstanding is flushed, and what has completed before is told as it was. The
// kernel's word of that may never come.
func (d *device) lose(err error) {
	if d.lost != nil {
		return
	}
	d.lost = err
	for _, q := range d.qps {
		q.finish(q.quiet())
	}
	for q := range d.cqs {
		if q.ready.n > 0 {
			q.wake()
		}
	}
}
