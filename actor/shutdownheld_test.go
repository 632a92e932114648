package actor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"

	"github.com/rdmactor/rdmactor/states"
)

// receiving connects two runtimes, with an owner on goroutines that receives messages with react;
// each Receive lasts until release is closed.
func receiving(w *world, n int, react func(*Received)) (m *Received, mr *[]byte, release chan struct{}) {
	p := w.connect()
	owner := newProbe(w, w.sys, w.far.OffLoop(), nil)
	p.server.send(p.s, &Handover{To: owner.pid})
	settle()
	inHand := make(chan *Received, 1)
	release = make(chan struct{})
	owner.reactWith(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*Received); ok {
			react(m)
			select {
			case inHand <- m:
			default:
			}
			<-release
		}
	})
	for range n {
		p.client.send(p.c, NewSend([]byte("one")))
	}
	m = <-inHand
	settle()
	return m, &m.in.Chunk.SGE.MR.Bytes, release
}

// Freed memory is unmapped by the kernel's devices: a reader would crash the process. Shutdown
// leaves it to its holders.
func TestShutdownLeavesHeldMessages(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		// one in Receive, one in the mailbox
		m, memory, release := receiving(w, 2, func(*Received) {})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var err error
		if took := elapsed(func() { err = w.far.Shutdown(ctx) }); took != 10*time.Second {
			w.Errorf("Shutdown returned after %v: it has 10 s to wait for its messages", took)
		}
		is(w, err, context.DeadlineExceeded)
		if err == nil || !contains(err.Error(), "2 messages are still retained") {
			w.Errorf("%v does not say how many messages are held", err)
		}
		if *memory == nil || string(m.Data) != "one" {
			w.Errorf("Shutdown has freed the memory of a message that is being received: %q", m.Data)
		}
		close(release)
		settle()
		// it is left on purpose: the rig need not miss it
		w.far.loops[0].RecvBudget.Free = w.far.cfg.Limits.ReceiveMemory
	})
}

// Messages that come back in time end the wait, and nothing is left.
func TestShutdownWaitsForHeldMessages(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		m, memory, release := receiving(w, 1, func(m *Received) { m.Retain() })
		close(release)
		time.AfterFunc(2*time.Second, m.Release)
		var err error
		if took := elapsed(func() { err = w.far.Shutdown(context.Background()) }); took != 2*time.Second || err != nil {
			w.Errorf("Shutdown returned %v after %v, and the message came back after 2 s", err, took)
		}
		if *memory != nil {
			w.Error("the memory is left though nobody holds it")
		}
	})
}

// Held waits a second for a loop that an actor blocks, and then leaves it out.
func TestHeldOfABlockedLoop(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.connect()
		release := w.block(w.rt.loops[0])
		took := elapsed(func() {
			if held := w.rt.Held(); held != 0 {
				w.Errorf("the blocked loop has reported %d", held)
			}
		})
		if took != abortFor {
			w.Errorf("Held took %v, want %v", took, abortFor)
		}
		release()
	})
}

// Memory to send from that the device has not costs the message, not the connection.
func TestNoMemoryToSendFrom(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 64 << 10, Credits: 4})
		var pd verbs.PD
		w.onLoop(w.rt, func(l *loop) {
			a := l.Devices[0].Shared.SendArena(60 << 10)
			pd, a.PD = a.PD, poorPD{a.PD}
		})
		p.client.send(p.c, NewSend(make([]byte, 60<<10)))
		f, _ := next[*SendFailed](p.client)
		is(w, f, unix.ENOMEM)
		if errors.Is(f, ErrFlushed) {
			w.Errorf("%v says that the connection ended", f)
		}
		w.onLoop(w.rt, func(l *loop) { l.Devices[0].Shared.SendArena(60 << 10).PD = pd })
		p.client.send(p.c, NewSend(make([]byte, 60<<10)))
		next[*Received](p.server)
	})
}

// A stream ends at the message for which there was no memory. Its peer gets nothing that was sent
// behind it.
func TestNoMemoryForPartOfAStream(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 64 << 10, Credits: 4, Stream: true})
		w.onLoop(w.rt, func(l *loop) {
			a := l.Devices[0].Shared.SendArena(60 << 10)
			a.PD = &stumblingPD{PD: a.PD}
		})
		w.inTurn(func(actor.Context) {
			for range 2 {
				p.client.send(p.c, NewSend(make([]byte, 60<<10)))
			}
		})
		for range 2 {
			f, _ := next[*SendFailed](p.client)
			is(w, f, ErrFlushed)
		}
		d, _ := next[*Disconnected](p.client)
		is(w, d.Err, unix.ENOMEM)
		next[*Disconnected](p.server)
	})
}

// stumblingPD has no memory once.
type stumblingPD struct {
	verbs.PD
	asked bool
}

func (p *stumblingPD) Alloc(n int, a verbs.Access) (*verbs.MR, error) {
	if !p.asked {
		p.asked = true
		return nil, unix.ENOMEM
	}
	return p.PD.Alloc(n, a)
}

// poorPD has no memory.
type poorPD struct{ verbs.PD }

func (poorPD) Alloc(int, verbs.Access) (*verbs.MR, error) { return nil, unix.ENOMEM }
