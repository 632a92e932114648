package ucm

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// TestStrangers: an event of an unknown identifier is not delivered, not even to one with the same
// kernel number; an unknown event is tolerated.
func TestStrangers(t *testing.T) {
	b := newBench(t)
	id := b.create()
	b.happens(id.h+1, id.kid, uabi.EventRouteResolved)
	b.happens(0, id.kid, uabi.EventEstablished)
	b.happens(id.h, id.kid, uint32(states.NumKernelKinds))
	b.happens(id.h, id.kid, 1<<31)
	if len(b.up.events) != 0 {
		t.Errorf("got %+v: these are nobody's, or of no kind that is known", b.up.events)
	}
	b.happens(id.h, id.kid, uabi.EventRouteResolved)
	if len(b.up.events) != 1 || b.up.events[0].ev.Kind != states.KindRouteResolved {
		t.Errorf("got %+v, want the route's", b.up.events)
	}
}

// TestRequestOfNobody: a request whose listener has gone brings an identifier that would never be
// answered.
func TestRequestOfNobody(t *testing.T) {
	b := newBench(t)
	const child = 9
	b.happens(12345, child, uabi.EventConnectRequest)
	b.until("the child's destruction", func() bool { return b.k.destroyed(child) == 1 })
	if len(b.up.events) != 0 || len(b.in.ids) != 0 {
		t.Errorf("got %+v, %d identifiers", b.up.events, len(b.in.ids))
	}
}

// TestRequestWithoutDevice: a child whose device has gone in between is destroyed, and its
// listener is not notified.
func TestRequestWithoutDevice(t *testing.T) {
	b := newBench(t)
	l := b.create()
	b.k.answer = func(w wrote, _ []byte) error {
		if w.cmd == uabi.CommandQuery {
			return unix.ENXIO
		}
		return nil
	}
	b.happens(l.h, 9, uabi.EventConnectRequest)
	b.until("the child's destruction", func() bool { return b.k.destroyed(9) == 1 })
	if len(b.up.events) != 0 {
		t.Errorf("got %+v", b.up.events)
	}
}

// TestAfterDestroy: events under way when an identifier is destroyed are not delivered, also while
// the kernel takes its time.
func TestAfterDestroy(t *testing.T) {
	b := newBench(t)
	id := b.create().on(true)
	id.phase = connected
	release := make(chan struct{})
	b.k.answer = func(w wrote, _ []byte) error {
		if w.cmd == uabi.CommandDestroyID {
			<-release
		}
		return nil
	}
	cmd := &cmid.DestroyID{}
	if err := id.Do(cmd); !errors.Is(err, cmid.ErrPending) {
		t.Fatalf("destroying what is connected: %v, want ErrPending: it may wait in the kernel", err)
	}
	b.happens(id.h, id.kid, uabi.EventDisconnected)
	if len(b.up.events) != 0 || len(b.up.done) != 0 {
		t.Errorf("got %+v, done %+v: it is being destroyed", b.up.events, b.up.done)
	}
	close(release)
	b.until("the answer", func() bool { return len(b.up.done) == 1 })
	if d := b.up.done[0]; d.h != id.h || d.err != nil {
		t.Errorf("done %+v", d)
	}
}

// TestRejectOfAConnection: REJECTED is the end of a connection that this side has established. Its
// peer has gone before it got the RTU.
func TestRejectOfAConnection(t *testing.T) {
	b := newBench(t)
	id := b.create().on(false)
	id.phase = half
	b.happens(id.h, id.kid, uabi.EventEstablished)
	b.happens(id.h, id.kid, uabi.EventRejected)
	if len(b.up.events) != 2 || b.up.events[1].ev.Kind != states.KindDisconnected || b.up.events[1].ev.Status != -int32(unix.ECONNRESET) {
		t.Fatalf("got %+v, want Established and Disconnected, ECONNRESET", b.up.events)
	}
	if err := id.Do(&cmid.Disconnect{}); err != nil || id.phase != unconnected {
		t.Errorf("disconnect: %v, phase %v: the kernel has nothing to wait for", err, id.phase)
	}
}

// TestEventsWaitForTheAnswer: the kernel may report that a connect has succeeded before the call
// has returned.
func TestEventsWaitForTheAnswer(t *testing.T) {
	b := newBench(t)
	id := b.create().on(true)
	release := make(chan struct{})
	b.k.answer = func(w wrote, _ []byte) error {
		if w.cmd == uabi.CommandConnect {
			<-release
		}
		return nil
	}
	if err := id.Do(&cmid.Connect{Param: &cmid.ConnParam{QPNum: 5}}); !errors.Is(err, cmid.ErrPending) {
		t.Fatalf("connect on iWARP: %v, want ErrPending: the kernel waits for TCP", err)
	}
	b.happens(id.h, id.kid, uabi.EventEstablished)
	b.happens(id.h, id.kid, uabi.EventDisconnected)
	if len(b.up.events) != 0 {
		t.Errorf("got %+v before the answer", b.up.events)
	}
	close(release)
	b.until("the events", func() bool { return len(b.up.events) == 2 })
	if len(b.up.done) != 1 || b.up.events[0].ev.Kind != states.KindEstablished || b.up.events[1].ev.Kind != states.KindDisconnected {
		t.Errorf("done %+v, got %+v", b.up.done, b.up.events)
	}
	if id.phase != unconnected {
		t.Error("a closed iWARP connection has nothing to wait for")
	}
}

// TestTurnIsBounded: a channel with many events gives the loop's other work its turn.
func TestTurnIsBounded(t *testing.T) {
	b := newBench(t)
	for range eventsPerTurn + 5 {
		b.k.queue(uabi.EventResp{UID: uint64(b.create().h), Event: uabi.EventAddrChange})
	}
	b.in.Ready(eventloop.Readable)
	if n := len(b.up.events); n != eventsPerTurn {
		t.Errorf("%d events in a turn, want %d", n, eventsPerTurn)
	}
	b.in.Ready(eventloop.Readable)
	if n := len(b.up.events); n != eventsPerTurn+5 {
		t.Errorf("%d events, want all", n)
	}
}

// TestOneAtATime: while one identifier takes its steps, no system call is wasted on looking for a
// second event.
func TestOneAtATime(t *testing.T) {
	b := newBench(t)
	l, id := b.create(), b.create()
	if err := l.Do(&cmid.Listen{}); err != nil {
		t.Fatal(err)
	}
	before := len(b.k.wrote)
	b.happens(id.h, id.kid, uabi.EventRouteResolved)
	if n := len(b.k.wrote) - before; n != 1 || len(b.up.events) != 1 {
		t.Errorf("%d system calls for %d events", n, len(b.up.events))
	}
}

// TestConnectResponse: without a queue pair of this driver the owner has the third step; the event
// is delivered unchanged.
func TestConnectResponse(t *testing.T) {
	b := newBench(t)
	id := b.create().on(false)
	if err := id.Do(&cmid.Connect{Param: &cmid.ConnParam{QPNum: 5}}); err != nil {
		t.Fatal(err)
	}
	b.happens(id.h, id.kid, uabi.EventConnectResponse)
	if len(b.up.events) != 1 || b.up.events[0].ev.Kind != states.KindConnectResponse {
		t.Errorf("got %+v", b.up.events)
	}
	if err := id.Do(&cmid.Establish{}); err != nil {
		t.Fatal(err)
	}
	id.phase = unconnected
	if did := b.k.did(); did[len(did)-1] != uabi.CommandAccept {
		t.Errorf("did %v: the RTU is an ACCEPT", did)
	}
}

// FuzzEvent: whatever is in an event, nothing is read or reported beyond it.
func FuzzEvent(f *testing.F) {
	f.Add(uint32(4), []byte{1, 2, 3}, uint8(255), false)
	f.Add(uint32(12), []byte{}, uint8(0), true)
	f.Add(uint32(99), make([]byte, 304), uint8(8), true)
	f.Fuzz(func(t *testing.T, event uint32, param []byte, length uint8, datagram bool) {
		in := &instance{}
		ev := &uabi.EventResp{Event: event}
		copy(ev.Param[:], param)
		ev.Conn().PrivateDataLen = length
		ev.UD().PrivateDataLen = length
		in.decodeEvent(datagram, ev)
		if n := len(in.event.PrivateData); n > 255 {
			t.Errorf("%d bytes of private data", n)
		}
		if in.event.Kind != states.Kind(event) {
			t.Errorf("kind %v of event %d", in.event.Kind, event)
		}
	})
}
