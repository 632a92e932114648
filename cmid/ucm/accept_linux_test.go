package ucm

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// asked returns a request's identifier with a queue pair, whose changes the kernel lets wait.
func (b *bench) asked() (*driverID, *fakeQP) {
	b.Helper()
	id, q := b.withQP(false)
	id.phase = half
	q.hold = make(chan struct{})
	return id, q
}

// TestAcceptWaitsOffTheLoop: the kernel looks up the link address of the source that a request
// claims. Other requests are accepted until then, and events for this one are delivered after its
// answer.
func TestAcceptWaitsOffTheLoop(t *testing.T) {
	b := newBench(t)
	forged, slow := b.asked()
	honest, quick := b.asked()
	close(quick.hold)
	for _, id := range []*driverID{forged, honest} {
		if err := id.Do(&cmid.Accept{}); !errors.Is(err, cmid.ErrPending) {
			t.Fatalf("accept: %v, want ErrPending: the kernel may look for an address", err)
		}
	}
	b.until("the honest one", func() bool { return len(b.up.done) == 1 })
	if d := b.up.done[0]; d.h != honest.h || d.err != nil || quick.waits.Load() != 2 {
		t.Errorf("done %+v, its queue pair was changed %d times, want RTR and RTS", d, quick.waits.Load())
	}
	b.happens(forged.h, forged.kid, uabi.EventEstablished)
	forged.qpEvent(verbs.QPFatal)
	b.happens(forged.h, forged.kid, uabi.EventDisconnected)
	if len(b.up.events) != 0 || len(b.up.done) != 1 {
		t.Errorf("got %+v, done %+v, before the answer", b.up.events, b.up.done)
	}
	close(slow.hold)
	b.until("the events", func() bool { return len(b.up.events) == 3 })
	var delivered []states.Kind
	for _, e := range b.up.events {
		delivered = append(delivered, e.ev.Kind)
	}
	if want := []states.Kind{states.KindEstablished, states.KindQPFailed, states.KindDisconnected}; len(b.up.done) != 2 || !slices.Equal(delivered, want) {
		t.Errorf("done %+v, got %v, want %v", b.up.done, delivered, want)
	}
}

// TestAcceptFails: a request that cannot be accepted is rejected, and the queue pair fails.
func TestAcceptFails(t *testing.T) {
	b := newBench(t)
	id, q := b.asked()
	q.err = unix.ETIMEDOUT
	close(q.hold)
	if err := id.Do(&cmid.Accept{}); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	b.until("the answer", func() bool { return len(b.up.done) == 1 })
	if err := b.up.done[0].err; !errors.Is(err, unix.ETIMEDOUT) {
		t.Errorf("done with %v, want what the kernel has said", err)
	}
	did := b.k.did()
	if !slices.Contains(did, uabi.CommandReject) || slices.Contains(did, uabi.CommandAccept) || !slices.Equal(q.states, []verbs.QPState{verbs.QPError}) {
		t.Errorf("did %v, the queue pair was brought to %v; want it rejected, and failed", did, q.states)
	}
}

// TestDestroyBehindAccept: it waits for the accept without a thread, and begins when that has
// ended; one that had not begun never does.
func TestDestroyBehindAccept(t *testing.T) {
	b := newBench(t)
	id, q := b.asked()
	if err := id.Do(&cmid.Accept{}); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	for q.waits.Load() == 0 {
		b.in.mail.Run(0)
	}
	if err := id.Do(&cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	if n := b.k.destroyed(id.kid); n != 0 || q.destroyed != 0 || q.waits.Load() != 1 {
		t.Error("destroyed while the kernel is at its accept")
	}
	close(q.hold)
	b.until("the destruction", func() bool { return len(b.up.done) == 1 })
	if d := b.up.done[0]; d.h != id.h || id.ending == nil || b.k.destroyed(id.kid) != 1 || q.destroyed != 1 {
		t.Errorf("done %+v, destroyed %d times, its queue pair %d times", b.up.done, b.k.destroyed(id.kid), q.destroyed)
	}
}

// TestResponseWaitsOffTheLoop: the answer to a connect makes the queue pair ready as accept does,
// before it is reported as Established.
func TestResponseWaitsOffTheLoop(t *testing.T) {
	for _, fails := range []error{nil, unix.EHOSTUNREACH} {
		b := newBench(t)
		id, q := b.asked()
		q.err = fails
		b.happens(id.h, id.kid, uabi.EventConnectResponse)
		b.happens(id.h, id.kid, uabi.EventDisconnected)
		if len(b.up.events) != 0 {
			t.Fatalf("got %+v while the kernel is at it", b.up.events)
		}
		close(q.hold)
		b.until("the events", func() bool { return len(b.up.events) == 2 })
		want := states.KindEstablished
		if fails != nil {
			want = states.KindConnectError
		}
		ev := b.up.events[0].ev
		if ev.Kind != want || !errors.Is(ev.Err, fails) || b.up.events[1].ev.Kind != states.KindDisconnected {
			t.Errorf("got %+v, want %v and Disconnected", b.up.events, want)
		}
		if rtu := slices.Contains(b.k.did(), uabi.CommandAccept); rtu != (fails == nil) {
			t.Errorf("an RTU: %v, after %v", rtu, fails)
		}
		id.phase = unconnected
	}
}
