package ucm

import (
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/uabi"
	"github.com/rdmactor/rdmactor/eventloop"
)

// instance is the Driver on one loop: one event channel.
type instance struct {
	drv  *Driver
	loop *eventloop.Loop
	up   cmid.Upcalls
	file *uabi.File
	reg  *eventloop.Registration

	ids      map[cmid.Handle]*ident
	groups   map[cmid.Handle]*group // memberships by the handle that their events name
	devices  []*device
	removals *removals // nil: not watched
	gone     []*device // removed, and not closed yet
	backlog  int

	lanes      *lanes
	listeners  int               // of the identifiers: theirs are others' events
	connecting int               // connects that wait in the kernel
	busy       map[*ident]string // what the kernel is at, off the loop
	mail       mailbox           // what has come back
	got        uabi.EventResp    // the event that was fetched
	told       cmid.DriverEvent  // as it is told
	lost       *loss             // nil: the channel works
	closed     bool
}

// Open opens an event channel. The error is an *OpenError.
func (d *Driver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	f, err := openShared(d.cfg.node)
	if err != nil {
		return nil, err
	}
	in := newInstance(d, l, up, f)
	if in.reg, err = l.Add(f.FD(), eventloop.Readable, in); err != nil {
		in.lanes.leave()
		return nil, errors.Join(err, f.Close())
	}
	return in, nil
}

func newInstance(d *Driver, l *eventloop.Loop, up cmid.Upcalls, f *uabi.File) *instance {
	in := &instance{
		drv: d, loop: l, up: up, file: f,
		ids:     make(map[cmid.Handle]*ident),
		groups:  make(map[cmid.Handle]*group),
		busy:    make(map[*ident]string),
		backlog: maxBacklog(),
		lanes:   &process,
	}
	in.lanes.join()
	in.mail.init(in)
	return in
}

// maxBacklog is the kernel's limit of requests that nobody has fetched.
func maxBacklog() int {
	if text, err := os.ReadFile("/proc/sys/net/rdma_ucm/max_backlog"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n > 0 {
			return n
		}
	}
	return uabi.MaxBacklogDefault
}

// CreateID makes an identifier.
func (in *instance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	switch {
	case in.closed:
		return nil, unix.EBADF
	case in.lost != nil:
		return nil, in.lost.err
	}
	id := &ident{in: in, h: h, datagram: t == cmid.QPTypeUD}
	var err error
	if id.kid, err = in.file.CreateID(uint64(h), uint16(ps), uint8(t)); err != nil {
		return nil, in.checked(err)
	}
	in.ids[h] = id
	return id, nil
}

// Close destroys every identifier, and waits for those that the kernel takes its time for: not longer than two seconds for all of them
// together. A *HeldError names the others. What is given back on the loop (queue pairs, memory, the devices' files) is not counted.
func (in *instance) Close() error {
	if in.closed {
		return nil
	}
	in.closed = true
	var err error
	if in.reg != nil {
		err = in.reg.Remove()
	}
	for _, id := range in.ids {
		_ = id.destroy(nil)
	}
	held := in.mail.settle(in.drv.cfg.closeWait)
	in.lanes.leave()
	err = errors.Join(err, in.unwatch())
	for _, d := range append(in.gone, in.devices...) {
		err = errors.Join(err, d.close())
	}
	in.devices, in.gone = nil, nil
	if in.lost == nil {
		err = errors.Join(err, in.file.Close())
	}
	if held {
		err = errors.Join(err, in.held())
	}
	return err
}

func (in *instance) held() error {
	e := &HeldError{Err: unix.ETIMEDOUT}
	for id, doing := range in.busy {
		e.IDs = append(e.IDs, id.heldBy(doing))
	}
	return e
}

// offLoop has call, which may wait in the kernel, executed by l, and then called on the loop with its error.
func (in *instance) offLoop(l *lane, id *ident, doing string, call func() error, then func(error)) *job {
	in.busy[id] = doing
	in.mail.start()
	j := &job{group: id.group(), peer: id.peer.Addr(), call: call, then: func(err error) {
		in.mail.put(func() {
			delete(in.busy, id)
			then(err)
		})
	}}
	l.run(j)
	return j
}

// millis is a timeout as the kernel takes it: 0 is cmid's default of 2 s.
func millis(d time.Duration) uint32 {
	if d <= 0 {
		d = 2 * time.Second
	}
	return uint32(min((d+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
}
