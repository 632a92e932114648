package ucm

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/eventloop"
)

// kernel is a script in the device file's place.
type kernel struct {
	mu     sync.Mutex
	wrote  []wrote
	events []uabi.EventResp
	lowest uint32
	closed bool
	// answer executes a command; nil: it succeeds. Called without the lock, on the caller's
	// goroutine.
	answer func(w wrote, response []byte) error
	short  int // bytes that writes take less
}

// wrote is one write.
type wrote struct {
	cmd uabi.Command
	id  uint32 // of the commands that have one in the usual place
	arg []byte // the struct
}

func (k *kernel) FD() int { return 77 }

func (k *kernel) Lend(use func(fd int) error) error {
	k.mu.Lock()
	closed := k.closed
	k.mu.Unlock()
	if closed {
		return unix.EBADF
	}
	return use(k.FD())
}

func (k *kernel) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	return nil
}

// idAt is where each command's identifier is.
var idAt = map[uabi.Command]int{
	uabi.CommandDestroyID: 8, uabi.CommandBind: 0, uabi.CommandResolveAddr: 0, uabi.CommandResolveRoute: 0, uabi.CommandQuery: 8,
	uabi.CommandConnect: 272, uabi.CommandListen: 0, uabi.CommandAccept: 280, uabi.CommandReject: 0, uabi.CommandDisconnect: 0,
	uabi.CommandMigrateID: 8, uabi.CommandNotify: 0, uabi.CommandLeaveMulticast: 8, uabi.CommandJoinMulticast: 16,
}

func (k *kernel) Write(frame, response []byte) (int, error) {
	e := binary.NativeEndian
	w := wrote{cmd: uabi.Command(e.Uint32(frame)), arg: append([]byte(nil), frame[8:]...)}
	if at, ok := idAt[w.cmd]; ok {
		w.id = e.Uint32(w.arg[at:])
	}
	k.mu.Lock()
	k.wrote = append(k.wrote, w)
	n := len(frame) - k.short
	answer := k.answer
	switch w.cmd {
	case uabi.CommandGetEvent:
		if len(k.events) == 0 {
			k.mu.Unlock()
			return 0, unix.EAGAIN
		}
		*(*uabi.EventResp)(unsafe.Pointer(&response[0])) = k.events[0]
		k.events = k.events[1:]
	case uabi.CommandCreateID:
		e.PutUint32(response, k.lowest)
		k.lowest++
	}
	k.mu.Unlock()
	if answer != nil {
		if err := answer(w, response); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// did returns the commands that were written, without GET_EVENT.
func (k *kernel) did() (list []uabi.Command) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.wrote {
		if w.cmd != uabi.CommandGetEvent {
			list = append(list, w.cmd)
		}
	}
	return list
}

func (k *kernel) destroyed(id uint32) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.wrote {
		if w.cmd == uabi.CommandDestroyID && w.id == id {
			n++
		}
	}
	return n
}

func (k *kernel) queue(ev uabi.EventResp) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, ev)
}

// upcalls records the reports of an instance.
type upcalls struct {
	last   cmid.Handle
	events []delivered
	done   []done
	during func(h cmid.Handle, ev *cmid.DriverEvent)
}

type delivered struct {
	h  cmid.Handle
	ev cmid.DriverEvent
}

type done struct {
	h   cmid.Handle
	err error
}

func (u *upcalls) NewHandle() cmid.Handle { u.last++; return u.last }

func (u *upcalls) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	copied := *ev
	copied.PrivateData = append([]byte(nil), ev.PrivateData...)
	u.events = append(u.events, delivered{h, copied})
	if u.during != nil {
		u.during(h, ev)
	}
}

func (u *upcalls) Done(h cmid.Handle, err error) {
	u.done = append(u.done, done{h, err})
}

// bench is an instance on a scripted kernel.
type bench struct {
	*testing.T
	k    *kernel
	up   *upcalls
	loop *eventloop.Loop
	in   *instance
}

func newBench(t *testing.T, cfg ...Config) *bench {
	t.Helper()
	c := Config{NoProvider: true}
	if len(cfg) > 0 {
		c = cfg[0]
		c.NoProvider = c.Provider == nil
	}
	loop, err := eventloop.New(eventloop.Config{Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, k: &kernel{}, up: &upcalls{last: 100}, loop: loop}
	b.in = newInstance(New(c), loop, b.up, uabi.NewFile(b.k))
	t.Cleanup(func() {
		if err := b.in.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := loop.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return b
}

// create makes an identifier and gives it.
func (b *bench) create() *driverID {
	b.Helper()
	id, err := b.in.CreateID(b.up.NewHandle(), cmid.PortSpaceTCP, cmid.QPTypeRC)
	if err != nil {
		b.Fatal(err)
	}
	return id.(*driverID)
}

// migrate moves an identifier, from wherever it is.
func (b *bench) migrate(id *driverID, to *instance) error {
	b.Helper()
	d, err := id.Detach()
	if err != nil {
		return err
	}
	return d.Attach(to)
}

// happens queues an event for a uid, and has it fetched.
func (b *bench) happens(uid cmid.Handle, id uint32, event uint32) {
	b.Helper()
	b.k.queue(uabi.EventResp{UID: uint64(uid), ID: id, Event: event})
	b.in.Ready(eventloop.Readable)
}

// on puts an identifier on an iWARP device, or on one that is none.
func (id *driverID) on(iwarp bool) *driverID {
	id.dev = &device{name: "dev0", iwarp: iwarp, verbs: bare{}}
	return id
}

// until turns the loop until cond is true.
func (b *bench) until(what string, cond func() bool) {
	b.Helper()
	b.in.mail.settleUntil(b.T, what, cond)
}

// settleUntil handles results of other goroutines until cond is true.
func (m *mailbox) settleUntil(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for !cond() {
		select {
		case <-m.came:
			m.Run(0)
		case <-t.Context().Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
