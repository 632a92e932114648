package remoting

import (
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// aPeer returns a peer with a queue of so many bytes, and no link.
func aPeer(queue int) *peer {
	p := newPeer(&host{cfg: Config{Queue: queue}, rt: new(rdma.Runtime)}, 1, 1, "x")
	p.awake = true
	return p
}

func record(size int) *frame.Record {
	return &frame.Record{Kind: frame.KindUser, Target: "t", Type: "t", Body: make([]byte, size)}
}

// waitsFor starts a sender that waits for room, until it is woken.
func waitsFor(t *testing.T, p *peer, r *frame.Record, m *outgoing) (released chan struct{}) {
	t.Helper()
	released = make(chan struct{})
	p.mu.Lock()
	n := p.user.Waiters()
	p.mu.Unlock()
	go func() {
		p.awaitRoom(r.Target, r.Size(), m)
		close(released)
	}()
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		waits = p.user.Waiters() > n
		p.mu.Unlock()
	}
	return released
}

// Room that was reserved at an ended peer is not used at the next one.
func TestRoomIsReservedAtOnePeer(t *testing.T) {
	p, next := aPeer(64<<10), aPeer(64<<10)
	var m outgoing
	if v, err := p.queueMessage(record(60<<10), &m); v != accepted {
		t.Fatal(v, err)
	}
	r := record(50 << 10)
	released := waitsFor(t, p, r, &m)
	p.mu.Lock()
	out, _ := p.user.Take()
	p.user.Gone(&out)
	p.releaseLocked()
	p.mu.Unlock()
	<-released
	for range 2 {
		_, _ = next.queueMessage(r, &m)
	}
	if left := next.user.Limit() - next.user.Bytes(); left < 0 || !next.user.Room("u", left) || next.user.Room("u", left+1) {
		t.Errorf("%d bytes are left, and there is no room for them", left)
	}
}

// If a message that has waited for room is refused, its room is the next one's.
func TestRoomOfWhatIsRefused(t *testing.T) {
	p := aPeer(64 << 10)
	var first, second outgoing
	if v, err := p.queueMessage(record(60<<10), &first); v != accepted {
		t.Fatal(v, err)
	}
	bad := record(50 << 10)
	bad.Target = "" // what no frame takes
	one := waitsFor(t, p, bad, &first)
	two := waitsFor(t, p, record(50<<10), &second)
	p.mu.Lock()
	out, _ := p.user.Take()
	p.user.Gone(&out)
	p.releaseLocked()
	p.mu.Unlock()
	<-one
	if v, _ := p.queueMessage(bad, &first); v != refused {
		t.Fatal(v)
	}
	select {
	case <-two:
	case <-time.After(time.Minute):
		t.Fatal("there is room, and it waits")
	}
}
