package outbox

import (
	"fmt"
	"testing"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

func record(target string, size int) *frame.Record {
	return &frame.Record{Kind: frame.KindUser, Target: target, Type: "t", Body: make([]byte, size)}
}

func put(t *testing.T, l *Lane, r *frame.Record) {
	t.Helper()
	if err := l.Append(r, r.Size()); err != nil {
		t.Fatal(err)
	}
}

// targets returns whom the records of a packet are for.
func targets(p *Packet) (s string) {
	p.Each(func(r *frame.Record) { s += r.Target })
	return s
}

// Records keep their order, gathered in frames; a large record has a separate frame. A frame counts
// until it was sent, also after Take.
func TestRecordsKeepTheirOrder(t *testing.T) {
	l := MakeLane(1 << 20)
	for i := range 3 {
		put(t, &l, record(fmt.Sprint(i), 100))
	}
	put(t, &l, record("L", 2*FrameBytes))
	put(t, &l, record("x", 100))
	if l.Number() != 2 || l.Records() != 5 {
		t.Errorf("%d records, and the latest is in packet %d", l.Records(), l.Number())
	}
	for i, want := range []string{"012", "L", "x"} {
		p, ok := l.Take()
		if !ok || p.Number != uint64(i) || p.Records != len(want) || targets(&p) != want {
			t.Fatalf("packet %d has number %d, and the records %s", i, p.Number, targets(&p))
		}
		before := l.Bytes()
		l.Gone(&p)
		if before-l.Bytes() != len(p.Bytes()) {
			t.Errorf("%d bytes, and they counted as %d", len(p.Bytes()), before-l.Bytes())
		}
		p.Free()
	}
	if _, ok := l.Take(); ok || !l.Empty() || l.Bytes() != 0 {
		t.Errorf("%d bytes are left", l.Bytes())
	}
}

// A record that no frame takes leaves nothing behind, and a packet that is put back is the next.
func TestWhatIsNotSentStays(t *testing.T) {
	l := MakeLane(1 << 20)
	if err := l.Append(record("", 1), 1); err == nil || !l.Empty() || l.Bytes() != 0 {
		t.Errorf("%v, and %d bytes wait", err, l.Bytes())
	}
	for _, target := range []string{"a", "b", "c"} {
		put(t, &l, record(target, FrameBytes))
	}
	p, _ := l.Take()
	l.Back(p)
	if p, _ = l.Take(); targets(&p) != "a" {
		t.Errorf("%s is before it", targets(&p))
	}
}

// Filtered records release their room. The others keep the number of their packet, by which
// requests are found.
func TestFilterKeepsNumbers(t *testing.T) {
	l := MakeLane(1 << 20)
	for _, target := range []string{"a", "b", "a", "b"} {
		put(t, &l, record(target, FrameBytes))
	}
	was := l.Bytes()
	l.Filter(func(r *frame.Record) bool { return r.Target == "b" })
	if l.Bytes() != was/2 || l.Records() != 2 {
		t.Errorf("%d of %d bytes are left, in %d records", l.Bytes(), was, l.Records())
	}
	for _, number := range []uint64{1, 3} {
		if p, _ := l.Take(); p.Number != number || targets(&p) != "b" {
			t.Errorf("packet %d is now number %d, for %s", number, p.Number, targets(&p))
		}
	}
}

// released reports whether a sender was let go on.
func released(room <-chan struct{}) bool {
	select {
	case <-room:
		return true
	default:
		return false
	}
}

// Senders get room in the order in which they came, and room that is reserved for one is not
// available to others.
func TestRoomComesInOrder(t *testing.T) {
	q := MakeQueue(1000)
	append1(t, &q, record("a", 900))
	large, atLarge := q.Wait("b", 700)
	little, atLittle := q.Wait("c", 50)
	q.Release(false)
	if released(little) || q.Waiters() != 2 {
		t.Error("the large one was passed")
	}
	p, _ := q.Take()
	q.Gone(&p)
	q.Release(false)
	if !released(large) || !released(little) || q.Waiters() != 0 {
		t.Error("there is room, and they wait")
	}
	if left := 1000 - atLarge.size - atLittle.size; q.Room("d", left+1) || !q.Room("d", left) {
		t.Error("what is reserved is given twice")
	}
	q.Unreserve(atLarge)
	if !q.Room("d", 1000-atLittle.size) {
		t.Error("what was given back is lost")
	}
}

// A queue that is out of use has no waiters.
func TestAllAreReleased(t *testing.T) {
	q := MakeQueue(10)
	a, _ := q.Wait("a", 100)
	b, _ := q.Wait("b", 100)
	q.Release(true)
	if !released(a) || !released(b) {
		t.Error("some wait for ever")
	}
}

// A lane whose packets go allocates nothing.
func TestNoAllocations(t *testing.T) {
	l := MakeLane(1 << 20)
	r := record("a", 100)
	n := testing.AllocsPerRun(1000, func() {
		_ = l.Append(r, r.Size())
		p, _ := l.Take()
		l.Gone(&p)
		p.Free()
	})
	if n >= 1 { // the pool may lose a buffer to a collection
		t.Errorf("%v allocations", n)
	}
}
