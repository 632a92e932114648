package differential

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// watched is a driver that refuses commands that would crash or hang a kernel. The state machine
// should have refused them before. watched follows the connections by itself, and does not ask the
// state machine.
type watched struct {
	cmid.Driver
	caught *atomic.Int32 // commands that watched had to refuse
	opened func(*watchedInstance)
}

// Open wraps the driver's instance.
func (d watched) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	w := &watchedInstance{ids: make(map[cmid.Handle]*watchedID), caught: d.caught}
	inst, err := d.Driver.Open(l, &watchedUpcalls{up, w})
	w.Instance = inst
	d.opened(w)
	return w, err
}

// half says which half of a handshake was done.
type half uint8

const (
	notHalf   half = iota
	requested      // connect was called: ib_cm REQ_SENT, iw_cm CONN_SENT
	replied        // accept was called: ib_cm REP_SENT
)

type watchedInstance struct {
	cmid.Instance
	ids    map[cmid.Handle]*watchedID
	caught *atomic.Int32
}

// CreateID wraps the identifier that the driver makes.
func (w *watchedInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	id, err := w.Instance.CreateID(h, ps, t)
	if err != nil {
		return nil, err
	}
	return w.watch(id), nil
}

func (w *watchedInstance) watch(id cmid.DriverID) *watchedID {
	watched := &watchedID{DriverID: id, w: w}
	w.ids[id.Handle()] = watched
	return watched
}

type watchedID struct {
	cmid.DriverID
	w    *watchedInstance
	half half
}

// Do refuses commands that must not reach the driver. On iWARP the kernel would oops. On InfiniBand
// the destroy would block for minutes.
func (id *watchedID) Do(cmd cmid.Command) error {
	switch cmd.(type) {
	case *cmid.Accept, *cmid.Establish, *cmid.Reject:
		if id.half == requested || id.half == replied && id.Flavor()&states.IWARP == 0 {
			id.w.caught.Add(1)
			return fmt.Errorf("differential: %v would harm a kernel here: %w", cmd.Op(), unix.EPERM)
		}
	}
	switch cmd.(type) {
	case *cmid.Connect:
		id.half = requested
	case *cmid.Accept:
		id.half = replied
	case *cmid.DestroyID:
		delete(id.w.ids, id.Handle())
	}
	err := id.DriverID.Do(cmd)
	id.ended(cmd, err)
	return err
}

// ended forgets the half of a connection whose command has failed.
func (id *watchedID) ended(cmd cmid.Command, err error) {
	failed := err != nil && err != cmid.ErrPending //nolint:errorlint // the driver's own value
	switch cmd.(type) {
	case *cmid.Connect, *cmid.Accept:
		if failed {
			id.half = notHalf
		}
	}
}

type watchedUpcalls struct {
	cmid.Upcalls
	w *watchedInstance
}

// Event forgets the half of a connection that the event ends.
func (u *watchedUpcalls) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	switch ev.Kind {
	case states.KindConnectResponse, states.KindEstablished, states.KindRejected, states.KindUnreachable, states.KindConnectError,
		states.KindDisconnected, states.KindDeviceRemoval:
		if id := u.w.ids[h]; id != nil {
			id.half = notHalf
		}
	case states.KindConnectRequest:
		ev.Child = u.w.watch(ev.Child)
	}
	u.Upcalls.Event(h, ev)
}

// Done forgets the half of a connection whose command has failed later.
func (u *watchedUpcalls) Done(h cmid.Handle, cmd cmid.Command, err error) {
	if id := u.w.ids[h]; id != nil {
		id.ended(cmd, err)
	}
	u.Upcalls.Done(h, cmd, err)
}
