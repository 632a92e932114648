package actor

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// slowDevice puts an event channel like the kernel's in front of the twin: a FIFO of which the loop
// reads a part in each turn. Its queue pairs take time to make, which the loop spends in the call.
type slowDevice struct {
	cmid.Driver
	poller *eventlooptest.Poller
	cost   time.Duration // of a queue pair

	made     int // queue pairs
	overtook int // the most queue pairs that were made while an event waited
}

// openSlow opens a runtime over a device here whose queue pairs take cost.
func (w *world) openSlow(cost time.Duration, cfg ...Config) (*Runtime, *slowDevice) {
	w.Helper()
	d := &slowDevice{Driver: w.f.Driver(), poller: eventlooptest.NewPoller(), cost: cost}
	c := one(cfg)
	c.Device, c.Loops = d, []eventloop.Config{{Poller: d.poller, CheckGoroutine: true}}
	return openRuntime(w, w.sys, c), d
}

func (d *slowDevice) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in := &slowInstance{Upcalls: up, d: d}
	if _, err := l.Add(channelFD, eventloop.Readable, in); err != nil {
		return nil, err
	}
	var err error
	in.Instance, err = d.Driver.Open(l, in)
	return in, err
}

const (
	channelFD     = 1 << 20
	channelBudget = 64 // events in a turn, as of package ucm
)

type slowInstance struct {
	cmid.Instance
	cmid.Upcalls
	d      *slowDevice
	unread ring.Ring[unread]
}

// unread is an event in the channel.
type unread struct {
	h    cmid.Handle
	ev   cmid.DriverEvent
	made int // queue pairs, when it came
}

func (in *slowInstance) Enclosed() bool { return true }

func (in *slowInstance) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	own := *ev
	own.PrivateData = append([]byte(nil), ev.PrivateData...)
	in.unread.Push(unread{h, own, in.d.made})
	if in.unread.Len() == 1 {
		in.d.poller.Fire(channelFD, eventloop.Readable)
	}
}

func (in *slowInstance) Ready(eventloop.Events) {
	for range min(in.unread.Len(), channelBudget) {
		u := in.unread.Pop()
		in.d.overtook = max(in.d.overtook, in.d.made-u.made)
		in.Upcalls.Event(u.h, &u.ev)
	}
	if in.unread.Len() > 0 {
		in.d.poller.Fire(channelFD, eventloop.Readable)
	}
}

func (in *slowInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	id, err := in.Instance.CreateID(h, ps, t)
	return &slowID{id, in}, err
}

type slowID struct {
	cmid.DriverID
	in *slowInstance
}

func (id *slowID) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	time.Sleep(id.in.d.cost)
	id.in.d.made++
	return id.DriverID.CreateQP(attr)
}

// accepting starts an owner there that accepts every request.
func (w *world) accepting() {
	w.Helper()
	p := w.farProbe()
	w.listen(p)
	p.reactWith(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			p.send(ctx.Sender(), &Accept{})
		}
	})
}

// Dials that were answered wait for their queue pairs, and no deadline of the device's steps counts
// that. The device's reports do not wait behind them: each turn reads some, and makes one.
func TestManyDialsWaitForTheirQueuePairsOnly(t *testing.T) {
	onFlavors(t, func(w *world) {
		const n, cost = 300, 50 * time.Millisecond // much more than any Timeouts
		w.accepting()
		rt, d := w.openSlow(cost)
		p := newProbe(w, w.sys, rt.OnLoop(), nil)
		for range n {
			p.send(rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		}
		for i := range n {
			if g := p.any(); kinds([]got{g}) != "Established" {
				w.Fatalf("after %d: %v", i, g)
			}
		}
		turn(w, rt, func() {
			if most := n/channelBudget + 2; d.overtook > most {
				w.Errorf("an event waited while %d queue pairs were made, want at most %d: one in each turn", d.overtook, most)
			}
		})
	})
}

// A Dial that is alone does not wait: it goes on in the turn of its answer.
func TestSingleDialDoesNotWait(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.accepting()
		rt, _ := w.openSlow(50 * time.Millisecond)
		p := newProbe(w, w.sys, rt.OnLoop(), nil)
		p.send(rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		next[*Established](p)
		turn(w, rt, func() {
			if rt.loops[0].dials.waiting.Cap() != 0 {
				w.Errorf("the Dial has waited in the queue")
			}
		})
	})
}

// A Dial that waits for its turn ends like any other: when it has run out of time, when its caller
// gives up, and when its identifier is destroyed. It takes no turn then.
func TestWaitingDialEnds(t *testing.T) {
	onFlavors(t, func(w *world) {
		const n, cost = 40, 100 * time.Millisecond
		w.accepting()
		rt, d := w.openSlow(cost)
		busy, p := newProbe(w, w.sys, rt.OnLoop(), nil), newProbe(w, w.sys, rt.OnLoop(), nil)
		for range n {
			busy.send(rt.CreateID(busy.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		}
		dial := &Dial{Addr: there + ":7471", Timeout: time.Second}
		p.send(rt.CreateID(p.pid, IDConfig{}), dial)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		dropped, cancelled := rt.CreateID(p.pid, IDConfig{}), rt.CreateID(p.pid, IDConfig{Context: ctx})
		p.send(dropped, &Dial{Addr: there + ":7471"})
		p.send(cancelled, &Dial{Addr: there + ":7471"})
		time.Sleep(500 * time.Millisecond)
		p.send(dropped, &DestroyID{})
		var closed int
		for closed < 3 {
			switch m := p.any().msg.(type) {
			case *Established:
				w.Error("a Dial went on that had ended")
			case *CommandFailed:
				if m.Command == dial {
					is(w, m, unix.ETIMEDOUT)
				}
			case *Closed:
				closed++
			}
		}
		for range n {
			next[*Established](busy)
		}
		turn(w, rt, func() {
			if d.made != n {
				w.Errorf("%d queue pairs were made, want %d: none for Dials that had ended", d.made, n)
			}
		})
	})
}

// The time that an address has does not count the wait for the loop's turn.
func TestWaitForTheTurnIsNotTheAddress(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		const n, cost = 60, 100 * time.Millisecond // 6 s: more than half of Timeouts.Connect
		w.accepting()
		rt, _ := w.openSlow(cost)
		rt.resolve = addresses(there+":7471", there+":7002")
		p := newProbe(w, w.sys, rt.OnLoop(), nil)
		for range n {
			p.send(rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: "there:7471"})
		}
		for range n {
			if e, _ := next[*Established](p); e.Peer.AddrPort.Port() != 7471 {
				w.Fatalf("connected to %v: the first address was given up without having been asked", e.Peer)
			}
		}
	})
}
