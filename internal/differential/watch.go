package differential

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// watched is a driver that no command reaches which would crash or hang a kernel: the state machine must have refused it. It follows
// the connections by itself, so that the state machine is not its own witness.
type watched struct {
	cmid.Driver
	caught *atomic.Int32 // commands that came through
	opened func(*watchedInstance)
}

// Open wraps the instance.
func (d watched) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	w := &watchedInstance{half: make(map[cmid.Handle]half), caught: d.caught}
	inst, err := d.Driver.Open(l, &watchedUpcalls{up, w})
	w.Instance = inst
	d.opened(w)
	return w, err
}

// half is how far a connection is.
type half uint8

const (
	notHalf   half = iota
	requested      // connect was called: ib_cm REQ_SENT, iw_cm CONN_SENT
	replied        // accept was called: ib_cm REP_SENT
)

type watchedInstance struct {
	cmid.Instance
	half   map[cmid.Handle]half
	caught *atomic.Int32
}

// Do refuses what the driver must never see: on iWARP the kernel would oops, on InfiniBand the destroy would block for minutes.
func (w *watchedInstance) Do(h cmid.Handle, cmd cmid.Command) error {
	half := w.half[h]
	switch cmd.(type) {
	case *cmid.Accept, *cmid.Establish, *cmid.Reject:
		if half == requested || half == replied && w.Flavor(h)&states.IWARP == 0 {
			w.caught.Add(1)
			return fmt.Errorf("differential: %v would harm a kernel here: %w", cmd.Op(), unix.EPERM)
		}
	}
	switch cmd.(type) {
	case *cmid.Connect:
		w.half[h] = requested
	case *cmid.Accept:
		w.half[h] = replied
	}
	err := w.Instance.Do(h, cmd)
	w.ended(h, cmd, err)
	return err
}

// ended forgets what a failing command, or the identifier's end, has undone.
func (w *watchedInstance) ended(h cmid.Handle, cmd cmid.Command, err error) {
	failed := err != nil && err != cmid.ErrPending //nolint:errorlint // the driver's own value
	switch cmd.(type) {
	case *cmid.Connect, *cmid.Accept:
		if failed {
			delete(w.half, h)
		}
	case *cmid.DestroyID:
		delete(w.half, h)
	}
}

type watchedUpcalls struct {
	cmid.Upcalls
	w *watchedInstance
}

// Event ends the half of a connection that it is the end of.
func (u *watchedUpcalls) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	switch ev.Kind {
	case states.KindConnectResponse, states.KindEstablished, states.KindRejected, states.KindUnreachable, states.KindConnectError,
		states.KindDisconnected, states.KindDeviceRemoval:
		delete(u.w.half, h)
	}
	u.Upcalls.Event(h, ev)
}

// Done ends what failed later.
func (u *watchedUpcalls) Done(h cmid.Handle, cmd cmid.Command, err error) {
	u.w.ended(h, cmd, err)
	u.Upcalls.Done(h, cmd, err)
}
