package sides

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// WantQuiet settles, and requires that no event is left.
func (w *World) WantQuiet(why string) {
	w.Helper()
	w.Settle()
	for _, e := range []*Side{w.A, w.B} {
		if len(e.Heard) > 0 {
			w.Errorf("%s: the %s side has %v", why, e.name, e.Pending())
			e.Heard = nil
		}
	}
}

// Next waits for the side's next event. It must be an E, and of id unless id is nil.
func Next[E cmid.Event](e *Side, id *cmid.ID) E {
	e.w.Helper()
	got, _ := NextFrom[E](e, id)
	return got
}

// NextFrom is Next, and also returns the channel that delivered the event.
func NextFrom[E cmid.Event](e *Side, id *cmid.ID) (E, *cmid.Channel) {
	e.w.Helper()
	var want E
	e.w.Until(fmt.Sprintf("%T on the %s side", want, e.name), func() bool { return len(e.Heard) > 0 })
	h := e.Heard[0]
	e.Heard = e.Heard[1:]
	got, ok := h.Event.(E)
	if !ok || id != nil && h.ID != id {
		e.w.Fatalf("the %s side has %v of %d: %+v; want %T", e.name, h.Event.Kind(), h.ID.Handle(), h.Event, want)
	}
	if got.Ident() != h.ID.Handle() {
		e.w.Errorf("%T names %d, and came for %d", got, got.Ident(), h.ID.Handle())
	}
	return got, h.ch
}

// Request waits for a ConnectRequest and returns its identifier.
func (e *Side) Request() (*cmid.ID, *cmid.ConnectRequest) {
	e.w.Helper()
	ev := Next[*cmid.ConnectRequest](e, nil)
	return e.Ch.ID(ev.Ident()), ev
}

// WantErr requires that err is an errno. A want of 0 requires that there is no error.
func (w *World) WantErr(what string, err error, want unix.Errno) {
	w.Helper()
	var got unix.Errno
	if err != nil && !errors.As(err, &got) {
		w.Errorf("%s: %v has no errno", what, err)
		return
	}
	if got != want {
		w.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

// Err returns the error of a call, and drops its result.
func Err[V any](_ V, err error) error { return err }

// WantErrIn is WantErr, and also requires that the call left the identifier in a state.
func (w *World) WantErrIn(what string, id *cmid.ID, err error, want unix.Errno, state states.State) {
	w.Helper()
	w.WantErr(what, err, want)
	w.WantState(what, id, state)
}

// WantState requires that an identifier is in a state.
func (w *World) WantState(what string, id *cmid.ID, want states.State) {
	w.Helper()
	if id.State() != want {
		w.Errorf("%s: state %v, want %v", what, id.State(), want)
	}
}

// Forget drops the events of both sides that the test has not yet taken.
func (w *World) Forget() { w.A.Heard, w.B.Heard = nil, nil }

// First waits for the next event of any type.
func (e *Side) First() Heard {
	e.w.Helper()
	e.w.Until("an event on the "+e.name+" side", func() bool { return len(e.Heard) > 0 })
	h := e.Heard[0]
	e.Heard = e.Heard[1:]
	return h
}

// WantRejected waits for a Rejected with that reason and returns its private data. It does not
// check the reason on iWARP, which does not carry it.
func (w *World) WantRejected(id *cmid.ID, reason cmid.RejectReason) (data []byte) {
	w.Helper()
	if w.IWARP {
		reason = cmid.RejectReset
	}
	ev := Next[*cmid.Rejected](w.A, id)
	if ev.Reason != reason {
		w.Errorf("rejected for reason %d, want %d", ev.Reason, reason)
	}
	w.WantState("rejected", id, states.Failed)
	return ev.PrivateData
}

// NextBy is Next, and also requires that ch delivered the event.
func NextBy[E cmid.Event](e *Side, id *cmid.ID, ch *cmid.Channel) {
	e.w.Helper()
	if ev, by := NextFrom[E](e, id); by != ch {
		e.w.Errorf("%T came by the other channel", ev)
	}
}
