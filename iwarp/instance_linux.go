package iwarp

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp/core"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

const (
	stagingLen = core.SpillLen // bytes of one read
	// peekLen is how much is read besides large payloads: what ends their segments and begins the next, whose payload then is read to
	// where it belongs too.
	peekLen = 512
	// landLen is room for the payloads of a read and what is between them.
	landLen = 32
)

// instance is the Driver on one loop.
type instance struct {
	drv  *Driver
	cfg  Config
	loop *eventloop.Loop
	up   cmid.Upcalls
	dev  *device

	ids     map[cmid.Handle]*ident
	conns   int         // sockets of connections
	setups  connList    // of these, waiting for their Request
	lingers connList    // of these, without an identifier
	held    []*listener // wait for room among the set-ups
	probes  map[int]int // by address family: a datagram socket that asks the routing table

	staging []byte        // every read goes here first,
	peek    [peekLen]byte // but what ends large payloads, which are read to
	land    [][]byte      // where they belong
	pool    core.Pool
	iov     [][]byte
	sys     sysVec

	reading  *conn // its input is under way: it has the staging buffer
	deferred bool  // Run will come at the end of the turn
	draining bool
	dirty    []*conn // have something to write
	spare    []*conn
	notify   []*completionQueue // have something to tell
	low      []*sharedQueue     // have a limit event to tell
	serving  []*sharedQueue     // have receives for connections that wait
	resuming []*conn            // are not paused any more
	kept     int                // bytes that connections which wait have read
	// completed counts completions, for whoever reads.
	completed int
	events    []event          // to be told, in order
	first     int              // events[first:] is not yet told
	told      cmid.DriverEvent // the one being told
	strangers atomic.Uint64    // connections that ended without a Request
	closed    bool
}

// Open makes an instance on l. It opens no fd.
func (d *Driver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in := &instance{
		drv: d, cfg: d.cfg, loop: l, up: up,
		ids:     make(map[cmid.Handle]*ident),
		probes:  make(map[int]int),
		staging: make([]byte, stagingLen),
		iov:     make([][]byte, 0, iovLen),
		land:    make([][]byte, 0, landLen),
	}
	in.dev = newDevice(in)
	return in, nil
}

// CreateID makes an identifier. EPROTONOSUPPORT for datagrams and AF_IB port spaces.
func (in *instance) CreateID(h cmid.Handle, ps cmid.PortSpace, _ cmid.QPType) (cmid.DriverID, error) {
	switch {
	case in.closed:
		return nil, unix.ENODEV
	case ps != cmid.PortSpaceTCP && ps != 0:
		return nil, fmt.Errorf("iwarp has reliable connections only, not port space %v: %w", ps, unix.EPROTONOSUPPORT)
	}
	id := &ident{in: in, h: h, fd: -1}
	in.ids[h] = id
	return id, nil
}

// Devices is the one device.
func (in *instance) Devices() []verbs.Device { return []verbs.Device{in.dev} }

// Close destroys every identifier and closes every socket, those that linger too.
func (in *instance) Close() error {
	if in.closed {
		return nil
	}
	in.closed = true
	for _, id := range in.ids {
		id.destroy()
	}
	for _, fd := range in.probes {
		closeFD(fd)
	}
	for _, q := range in.dev.qps { // of identifiers that were migrated
		q.conn.abort(time.Now())
		q.conn.close()
	}
	for in.setups.oldest != nil {
		in.setups.oldest.close()
	}
	for in.lingers.oldest != nil {
		in.lingers.oldest.close()
	}
	clear(in.events)
	in.events, in.first, in.notify, in.low, in.dirty, in.serving, in.resuming = nil, 0, nil, nil, nil, nil, nil
	if n := in.conns; n != 0 {
		return fmt.Errorf("iwarp: %d connections left after close: %w", n, unix.EBUSY)
	}
	return nil
}

// event is what has happened to an identifier.
type event struct {
	id *ident
	cmid.DriverEvent
}

// report queues ev where the identifier lives. It is delivered at the end of what goes on now,
// behind the completions that came before it.
func (id *ident) report(ev cmid.DriverEvent) {
	in := id.in
	in.events = append(in.events, event{id, ev})
	in.later()
}

// later has Run called at the end of the turn.
func (in *instance) later() {
	if !in.deferred && !in.closed {
		in.deferred = true
		in.loop.Defer(in)
	}
}

// touch has c's output written at the end of the turn: everything that the turn posts goes out in one system call.
func (in *instance) touch(c *conn) {
	if !c.dirty && !c.blocked && c.ready() {
		c.dirty = true
		in.dirty = append(in.dirty, c)
		in.later()
	}
}

// Run is the end of a turn: write, then tell.
func (in *instance) Run(int) bool {
	in.deferred = false
	if in.closed {
		return false
	}
	now := in.loop.Now()
	list, i := in.dirty, 0
	in.dirty = in.spare[:0]
	in.spare = nil
	defer func() {
		if i < len(list) { // the application has not returned: see torn
			in.dirty = append(in.dirty, list[i:]...)
			in.later()
		}
	}()
	for i < len(list) {
		c := list[i]
		list[i] = nil
		i++
		c.dirty = false
		if c.ready() {
			c.output(now)
			c.settle(now)
		}
	}
	in.spare = list[:0]
	in.drain()
	return false
}

// drain tells what there is to tell: completions before events, so that an identifier's end comes behind its messages.
func (in *instance) drain() {
	if in.draining {
		return
	}
	in.draining = true
	defer in.drained()
	for !in.closed {
		if n := len(in.low); n > 0 {
			s := in.low[n-1]
			in.low[n-1] = nil
			in.low = in.low[:n-1]
			if !s.gone {
				s.attr.OnLimit()
			}
			continue
		}
		if n := len(in.serving); n > 0 {
			s := in.serving[n-1]
			in.serving[n-1] = nil
			in.serving = in.serving[:n-1]
			in.serve(s)
			continue
		}
		if len(in.resuming) > 0 {
			in.resumeAll()
			continue
		}
		if n := len(in.notify); n > 0 {
			cq := in.notify[0]
			copy(in.notify, in.notify[1:])
			in.notify[n-1] = nil
			in.notify = in.notify[:n-1]
			cq.tell()
			continue
		}
		if in.first == len(in.events) {
			in.events, in.first = in.events[:0], 0
			return
		}
		ev := in.events[in.first]
		in.events[in.first] = event{}
		in.first++
		in.deliver(&ev)
	}
}

// drained ends drain, which a panic of the application's may have cut short.
func (in *instance) drained() {
	in.draining = false
	if len(in.notify) > 0 || len(in.low) > 0 || len(in.serving) > 0 || len(in.resuming) > 0 || in.first < len(in.events) {
		in.later()
	}
}

// deliver tells one event.
func (in *instance) deliver(ev *event) {
	if ev.id.dead {
		if ev.Child != nil {
			_ = ev.Child.Do(&cmid.DestroyID{}) // nobody will ever answer it
		}
		return
	}
	if c := ev.id.conn; c != nil && c.in != in {
		c.in.drain() // the completions of an identifier that was migrated are told there
	}
	if ev.Kind == states.KindEstablished && ev.id.conn != nil && ev.id.conn.qp != nil {
		defer ev.id.conn.qp.release() // also when the application panics
	}
	in.told = ev.DriverEvent
	in.up.Event(ev.id.h, &in.told)
	in.told = cmid.DriverEvent{}
}

// errnoOf finds the errno in err; EIO when there is none.
func errnoOf(err error) unix.Errno {
	var e unix.Errno
	if errors.As(err, &e) {
		return e
	}
	return unix.EIO
}
