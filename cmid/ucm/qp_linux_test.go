package ucm

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// fakeQP is a queue pair that records its commands.
type fakeQP struct {
	verbs.ProviderQP
	states    []verbs.QPState
	reads     []uint8
	destroyed int
	hold      chan struct{} // nil: nothing waits
	waits     atomic.Int32
	err       error
}

func (q *fakeQP) Num() uint32 { return 9 }

func (q *fakeQP) Modify(a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	if mask&verbs.QPAttrState != 0 {
		q.states = append(q.states, a.State)
	}
	if mask&verbs.QPAttrMaxRDAtomic != 0 {
		q.reads = append(q.reads, a.MaxRDAtomic)
	}
	return nil
}

func (q *fakeQP) Destroy() error { q.destroyed++; return nil }

// ModifyLater waits until it may be done, and then it is.
func (q *fakeQP) ModifyLater(a *verbs.QPAttr, mask verbs.QPAttrMask) verbs.Later {
	to := *a
	return verbs.Later{Wait: q.wait, End: func(err error) error {
		if err != nil {
			return err
		}
		return q.Modify(&to, mask)
	}}
}

func (q *fakeQP) DestroyLater() verbs.Later {
	return verbs.Later{Wait: q.wait, End: func(error) error { return q.Destroy() }}
}

// wait blocks like a call in the kernel, until hold is closed.
func (q *fakeQP) wait() error {
	if q.hold != nil {
		q.waits.Add(1)
		<-q.hold
	}
	return q.err
}

// roomy is a device with 16 concurrent Reads.
type roomy struct{ bare }

func (roomy) Attr() verbs.DeviceAttr { return verbs.DeviceAttr{MaxRDAtom: 16} }

// withQP returns an identifier with a queue pair.
func (b *bench) withQP(iwarp bool) (*driverID, *fakeQP) {
	b.Helper()
	id, q := b.create().on(iwarp), &fakeQP{}
	id.dev.verbs, id.qp = roomy{}, q
	return id, q
}

// TestQueuePairOfAHalfOpenConnection: soft-iWARP's destruction of a queue pair waits for the
// connect, or for its answer. It is flushed immediately, so that nothing is received without a
// reader, and destroyed when the kernel has let go of it.
func TestQueuePairOfAHalfOpenConnection(t *testing.T) {
	for _, wait := range []uabi.Command{uabi.CommandConnect, uabi.CommandDestroyID} {
		b := newBench(t)
		release := b.hold(wait)
		id, q := b.withQP(true)
		if err := id.Do(&cmid.Connect{}); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		delivered := 0
		if wait == uabi.CommandDestroyID {
			b.until("the connect", func() bool { return len(b.up.done) == 1 })
			delivered = 1
		}
		if err := id.Do(&cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		if q.destroyed != 0 || !slices.Equal(q.states, []verbs.QPState{verbs.QPError}) {
			t.Errorf("while the kernel is at command %d: destroyed %d times, brought to %v; want it flushed only", wait, q.destroyed, q.states)
		}
		close(release)
		b.until("the destruction", func() bool { return len(b.up.done) == delivered+1 })
		if q.destroyed != 1 {
			t.Errorf("destroyed %d times when Done is reported", q.destroyed)
		}
	}
}

// TestQueuePairGoesOffTheLoop: a queue pair's destruction may wait in the kernel, which delays
// nothing else. It has gone when Done is reported.
func TestQueuePairGoesOffTheLoop(t *testing.T) {
	for _, c := range []struct {
		iwarp bool
		phase phase
	}{{true, unconnected}, {true, connected}, {false, unconnected}, {false, half}, {false, connected}} {
		b := newBench(t)
		id, q := b.withQP(c.iwarp)
		q.hold = make(chan struct{})
		id.phase = c.phase
		if err := id.Do(&cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
			t.Fatalf("%+v: %v, want ErrPending", c, err)
		}
		if q.destroyed != 0 || len(b.up.done) != 0 {
			t.Errorf("%+v: destroyed %d times, done %+v, while the kernel is at it", c, q.destroyed, b.up.done)
		}
		close(q.hold)
		b.until("the destruction", func() bool { return len(b.up.done) == 1 })
		if q.destroyed != 1 || b.k.destroyed(id.kid) != 1 {
			t.Errorf("%+v: destroyed %d times, its identifier %d times, when Done is reported", c, q.destroyed, b.k.destroyed(id.kid))
		}
	}
}

// TestForgottenByIWARP: soft-iWARP forgets outstanding requests when a connection ends, and the
// kernel leaves an InfiniBand queue pair as it is until its owner disconnects.
func TestForgottenByIWARP(t *testing.T) {
	for _, iwarp := range []bool{true, false} {
		b := newBench(t)
		id, q := b.withQP(iwarp)
		id.phase = connected
		b.happens(id.h, id.kid, uabi.EventDisconnected)
		if failed := slices.Contains(q.states, verbs.QPError); failed != iwarp || len(b.up.events) != 1 {
			t.Errorf("iWARP %v: a queue pair that fails: %v, got %+v", iwarp, failed, b.up.events)
		}
	}
}

// TestQueuePairFails: the failure of a queue pair is reported as long as its identifier exists,
// whatever the state of the connection in rdma_cm.
func TestQueuePairFails(t *testing.T) {
	b := newBench(t)
	id, _ := b.withQP(false)
	id.phase = connected
	id.qpEvent(verbs.QPLastWQE)
	if len(b.up.events) != 0 {
		t.Errorf("got %+v of a queue pair that has not failed", b.up.events)
	}
	id.qpEvent(verbs.QPFatal)
	if len(b.up.events) != 1 || b.up.events[0].ev.Kind != states.KindQPFailed {
		t.Errorf("got %+v, want QPFailed", b.up.events)
	}
	if err := id.Do(&cmid.DestroyID{}); err != nil && !errors.Is(err, cmid.ErrPending) {
		t.Fatal(err)
	}
	id.qpEvent(verbs.QPFatal)
	if len(b.up.events) != 1 {
		t.Errorf("got %+v of an identifier that is gone", b.up.events)
	}
}

// TestReadsThatThePeerServes: on iWARP, as many Reads as both sides have agreed on may be
// outstanding, and none where that is none.
func TestReadsThatThePeerServes(t *testing.T) {
	for _, c := range []struct {
		asks, serves uint8
		iwarp        bool
		want         []uint8
	}{
		{4, 2, true, []uint8{2}},
		{2, 4, true, []uint8{2}},
		{4, 0, true, []uint8{0}},
		{0, 4, true, []uint8{0}},
		{16, 255, true, nil}, // as many as the device has anyway
		{4, 2, false, nil},   // set when the queue pair is made ready
	} {
		b := newBench(t)
		id, q := b.withQP(c.iwarp)
		if err := id.Do(&cmid.Connect{Param: &cmid.ConnParam{InitiatorDepth: c.asks}}); c.iwarp && !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		if c.iwarp {
			b.until("the connect", func() bool { return len(b.up.done) == 1 })
		}
		ev := uabi.EventResp{UID: uint64(id.h), Event: uabi.EventEstablished}
		ev.Conn().ResponderResources = c.serves
		b.k.queue(ev)
		b.in.Ready(0)
		if !slices.Equal(q.reads, c.want) {
			t.Errorf("%+v: the queue pair was given %v", c, q.reads)
		}
		id.phase = unconnected
	}
}

// endedQP counts the changes whose outcome was taken in.
type endedQP struct {
	fakeQP
	begun, ended int
}

func (q *endedQP) ModifyLater(a *verbs.QPAttr, mask verbs.QPAttrMask) verbs.Later {
	q.begun++
	later := q.fakeQP.ModifyLater(a, mask)
	return verbs.Later{Wait: later.Wait, End: func(err error) error {
		q.ended++
		return later.End(err)
	}}
}

// TestClimbThatCannotGoOn: the kernel may refuse the attributes for the change from RTR to RTS,
// for the connection has ended. The change that was begun gets its end: else the queue pair could
// not be destroyed, and its received messages would be kept.
func TestClimbThatCannotGoOn(t *testing.T) {
	b := newBench(t)
	id := b.create().on(false)
	q := &endedQP{}
	id.dev.verbs, id.qp = roomy{}, q
	asked := 0
	b.k.answer = func(w wrote, _ []byte) error {
		if w.cmd == uabi.CommandInitQPAttr {
			if asked++; asked == 2 {
				return unix.EINVAL
			}
		}
		return nil
	}
	if way, err := id.prepareRTS(nil); way != nil || !errors.Is(err, unix.EINVAL) {
		t.Fatalf("%v, %v, want what the kernel has said", way, err)
	}
	if q.begun != 1 || q.ended != 1 || len(q.states) != 0 {
		t.Errorf("%d changes begun, %d ended, brought to %v", q.begun, q.ended, q.states)
	}
}
