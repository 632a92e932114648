package uverbs

import (
	"testing"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// batches is a completion queue of an adapter that polls many at a time.
type batches struct {
	left  int // completions of the fake's queue pair
	asked int // how often it was asked
}

func (b *batches) Take(c *hca.CQE) bool {
	b.asked++
	if b.left == 0 {
		return false
	}
	b.left--
	*c = hca.CQE{Cookie: recvCookie, QPN: 17, Last: b.left == 0}
	return true
}

func (b *batches) Empty() bool { return b.left == 0 }

func (b *batches) Close() error { return nil }

// received posts a receive, and completes it.
func (f *fake) received(b *batches) {
	f.Helper()
	f.q.recvs = newRecvs(fakeDepth)
	f.must(f.q.PostRecv(verbs.RecvWR{SGE: f.part(0, 64)}))
	b.left++
}

// TestNothingBehindTheLast: an owner that polls until there is nothing, after a notification,
// causes no further calls with an adapter that polls many completions per call. A later poll
// returns what has arrived.
func TestNothingBehindTheLast(t *testing.T) {
	f := newFake(t)
	b := &batches{}
	f.cq.parts[0].ring = b
	var polls []int
	f.cq.notify = func() {
		polls = append(polls, len(f.poll()))
		f.received(b) // behind the last look
		polls = append(polls, len(f.poll()))
	}
	f.received(b)
	f.cq.callNotify()
	if len(polls) != 2 || polls[0] != 1 || polls[1] != 0 || b.asked != 1 {
		t.Errorf("polled %v, asked %d times, want 1 and 0, and once", polls, b.asked)
	}
	for range 2 {
		if n := len(f.poll()); n != 1 {
			t.Errorf("polled %d behind the notification, want what has come", n)
		}
		f.received(b)
	}
}

// TestPanicInANotification: the assumption made during it ends with it.
func TestPanicInANotification(t *testing.T) {
	f := newFake(t)
	b := &batches{}
	f.cq.parts[0].ring = b
	f.cq.notify = func() {
		f.poll()
		panic("the owner's")
	}
	f.received(b)
	func() {
		defer func() { _ = recover() }()
		f.cq.callNotify()
	}()
	f.received(b)
	if n := len(f.poll()); n != 1 {
		t.Errorf("polled %d behind the notification, want what has come", n)
	}
}

// TestSeveralPartsHaveNoLast: the last completion of one of the kernel's queues implies nothing
// about the others.
func TestSeveralPartsHaveNoLast(t *testing.T) {
	f := newFake(t)
	one, two := &batches{}, &batches{}
	f.cq.parts[0].ring = one
	f.cq.parts = append(f.cq.parts, &cqPart{q: f.cq, ring: two})
	n := 0
	f.cq.notify = func() {
		f.received(two)
		n = len(f.poll())
	}
	f.received(one)
	f.cq.callNotify()
	if n == 0 || two.asked == 0 {
		t.Errorf("polled %d, and asked the second queue %d times", n, two.asked)
	}
}
