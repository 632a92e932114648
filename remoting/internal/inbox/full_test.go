package inbox

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// peer is a connection whose messages are delivered to the targets that their first byte names.
type peer struct {
	*rig
	probe *actortest.Probe
	id    *actor.PID
	came  int // RDMA messages
}

const credits = 8

// connect has a peer connect to the link's actor.
func (r *rig) connect(names string) *peer {
	p := &peer{rig: r, probe: r.Probe()}
	r.received = func(m *rdma.Received) {
		p.came++
		i := m.Data[0]
		r.in.Deliver(actor.NewPID("", names[i:i+1]), &note{int(m.Data[1])}, 1000, m)
	}
	cfg := rdma.IDConfig{Credits: credits, MaxMessage: 64}
	lis := r.Runtime().CreateID(r.link, cfg)
	r.do(func(*Inbox) { r.System().Root.RequestWithCustomSender(lis, &rdma.Serve{Addr: ":7471"}, r.link) })
	p.id = r.Host("mem1", "10.0.0.2").CreateID(p.probe.PID(), cfg)
	p.probe.Request(p.id, &rdma.Dial{Addr: "10.0.0.1:7471"})
	actortest.Next[*rdma.Established](p.probe)
	return p
}

// send sends n notes to the target at i, the first one with the number from.
func (p *peer) send(i, from, n int) {
	for k := range n {
		p.probe.Send(p.id, rdma.NewSend([]byte{byte(i), byte(from + k)}))
	}
	p.Wait()
}

// small is an inbox that is full after 16 of the peer's messages, 7 of which fill a window.
var small = Config{Window: 8 << 10, Bytes: 16 * 1128}

// An inbox that is full stops its peer, and nobody else; it goes on when a quarter was consumed.
func TestFullStopsThePeer(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a, b := r.spawnTarget("a", opts...), r.spawnTarget("b", opts...)
		a.suspend()
		p := r.connect("ab")
		p.send(0, 0, 40)
		p.send(1, 0, 20)
		if want := 15 + credits; p.came != want {
			r.t.Errorf("%d RDMA messages came, want %d", p.came, want)
		}
		if !r.in.full || len(r.in.retained) != credits {
			r.t.Errorf("full: %v, retained: %d", r.in.full, len(r.in.retained))
		}
		a.resume()
		r.Advance(soon)
		a.wantNotes(r, "the one that was slow", 40)
		b.wantNotes(r, "the one behind it", 20)
		if len(r.refused) != 0 || r.in.full || len(r.in.retained) != 0 {
			r.t.Errorf("%d refused; full: %v, retained: %d", len(r.refused), r.in.full, len(r.in.retained))
		}
	}, "bounded")
}

// A target that stops its link for too long is refused what waits for it, once; the others go on,
// and so does the target, when it consumes again.
func TestPatienceIsOver(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a, b := r.spawnTarget("a", opts...), r.spawnTarget("b", opts...)
		a.suspend()
		p := r.connect("ab")
		p.send(0, 0, 100)
		p.send(1, 0, 20)
		r.Advance(defaultPatience - time.Second)
		b.wantNotes(r, "while there is patience", 0)
		r.Advance(2 * time.Second)
		b.wantNotes(r, "when it is over", 20)
		lost := make(map[int]bool)
		for _, f := range r.refused {
			n := f.msg.(*note).n
			if f.target != "a" || !errors.Is(f.why, ErrSlow) || !errors.Is(f.why, unix.ENOBUFS) || lost[n] {
				r.t.Errorf("refused: %+v", f)
			}
			lost[n] = true
		}
		a.resume()
		r.Advance(time.Minute)
		p.send(0, 100, 10)
		r.Advance(time.Minute)
		got := a.notes()
		if len(got)+len(lost) != 110 || len(lost) == 0 {
			r.t.Errorf("%d received, %d refused, of 110", len(got), len(lost))
		}
		for i, n := range got {
			if lost[n] || i > 0 && n <= got[i-1] {
				r.t.Errorf("%d was refused: %v, and comes behind %d", n, lost[n], got[i-1])
			}
		}
		if n := len(got); n < 10 || got[n-1] != 109 {
			r.t.Errorf("what was sent after it had gone on did not come: %v", got)
		}
	}, "bounded")
}

// Closing refuses what waits, and gives back what is retained.
func TestCloseInTheMiddle(t *testing.T) {
	inHomes(t, small, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		a.suspend()
		p := r.connect("a")
		p.send(0, 0, 40)
		r.do(func(in *Inbox) { in.Close() })
		r.Advance(time.Minute)
		a.resume()
		r.Advance(time.Minute)
		got := a.notes()
		if n := len(got) + len(r.refused); n != 40 {
			r.t.Errorf("%d received, %d refused, of 40", len(got), len(r.refused))
		}
		for _, f := range r.refused {
			if !errors.Is(f.why, ErrClosed) || !errors.Is(f.why, unix.ECANCELED) {
				r.t.Errorf("refused: %+v", f)
			}
		}
		a.wantNotes(r, "what it had", len(got))
	}, "bounded")
}
