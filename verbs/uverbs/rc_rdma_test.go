//go:build linux && rdma

package uverbs

import (
	"fmt"
	"testing"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// pair makes two connected queue pairs on one InfiniBand device.
func pair(t testing.TB, change func(*verbs.QPInitAttr)) (a, b *side) {
	t.Helper()
	if onSIW(t) {
		t.Skip("siw's queue pairs are connected by the connection manager only")
	}
	r := newRig(t, eventloop.Config{})
	a, b = r.side(verbs.RC, change), r.side(verbs.RC, change)
	r.connect(a, b)
	return a, b
}

func TestRCSendReceive(t *testing.T) {
	a, b := pair(t, nil)
	for i := range 16 {
		b.recv(i, slotLen)
	}
	for i := range 16 {
		a.send(i, fmt.Sprintf("message %d", i))
	}
	a.until("16 messages", func() bool { return len(b.of(verbs.Recv)) == 16 && len(a.of(verbs.Send)) == 16 })
	for i, wc := range b.of(verbs.Recv) {
		want := fmt.Sprintf("message %d", i)
		if wc.ID != uint64(100+i) || wc.Status != verbs.StatusSuccess || string(b.slot(i)[:wc.Bytes]) != want || wc.QP != b.qp {
			t.Errorf("receive %d is %+v with %q, want %q", i, wc, b.slot(i)[:wc.Bytes], want)
		}
	}
	for i, wc := range a.of(verbs.Send) {
		if want := (verbs.WC{ID: uint64(i), Op: verbs.Send, Bytes: uint32(len(fmt.Sprintf("message %d", i))), QP: a.qp}); wc != want {
			t.Errorf("send %d is %+v, want %+v", i, wc, want)
		}
	}
}

func TestRCPingPong(t *testing.T) {
	a, b := pair(t, nil)
	const rounds = 2000
	for _, s := range []*side{a, b} {
		for i := range 4 {
			s.recv(i, 64)
		}
	}
	a.send(0, "ping")
	for range rounds {
		for _, s := range []*side{b, a} {
			s.until("the other's message", func() bool { return len(s.of(verbs.Recv)) > 0 })
			s.recv(int(s.of(verbs.Recv)[0].ID-100), 64)
			s.done = s.done[:0]
			s.send(0, "pong")
		}
	}
	t.Logf("a was notified %d times, b %d", a.calls, b.calls)
}

// BenchmarkPingPong is a round trip of 64 bytes between two queue pairs on one loop.
func BenchmarkPingPong(b *testing.B) {
	x, y := pair(b, nil)
	for _, s := range []*side{x, y} {
		for i := range 4 {
			s.recv(i, 64)
		}
	}
	wr := verbs.SendWR{Flags: verbs.Signaled, Inline: make([]byte, 64)}
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range [][2]*side{{x, y}, {y, x}} {
			from, to := s[0], s[1]
			from.done, to.done = from.done[:0], to.done[:0]
			if err := from.qp.PostSend(&wr); err != nil {
				b.Fatal(err)
			}
			for len(to.done) == 0 || len(from.done) == 0 {
				if err := x.loop.Turn(); err != nil {
					b.Fatal(err)
				}
			}
			if err := to.qp.PostRecv(verbs.RecvWR{ID: to.done[0].ID, SGE: verbs.SGE{MR: to.mr, Length: 64}}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkOneWay is a message of 64 bytes, of which a turn sends 16.
func BenchmarkOneWay(b *testing.B) {
	x, y := pair(b, nil)
	wr := verbs.SendWR{Inline: make([]byte, 64)}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if err := y.qp.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: y.mr, Length: 64}}); err != nil {
			b.Fatal(err)
		}
		wr.Flags = 0
		if n%16 == 15 {
			wr.Flags = verbs.Signaled
		}
		if err := x.qp.PostSend(&wr); err != nil {
			b.Fatal(err)
		}
		if n%16 == 15 {
			for len(y.done) < 16 || len(x.done) == 0 {
				if err := x.loop.Turn(); err != nil {
					b.Fatal(err)
				}
			}
			x.done, y.done = x.done[:0], y.done[:0]
		}
	}
}
