package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// infiniband is the flavor whose sends take their time in the twin: on iWARP they are done as soon
// as the peer's TCP has them.
const infiniband states.Flavor = 0

// signals is a queue pair that counts the messages that are posted to it, and what of the postings
// is to complete in any case.
type signals struct {
	verbs.QP
	posted, signaled int
}

func (q *signals) PostSend(wr *verbs.SendWR) error {
	q.posted += len(messagesIn(sentBytes(wr)))
	if wr.Flags&verbs.Signaled != 0 {
		q.signaled++
	}
	return q.QP.PostSend(wr)
}

// burst sends n messages from the client of p within one Receive, with Notify for the last. The
// posts are counted.
func burst(w *world, p pair, n int) *signals {
	q := &signals{}
	counting := make(chan struct{})
	l := w.rt.loops[0]
	if err := l.el.Post(func() {
		for it := range l.ids {
			if it.pid.Equal(p.c) {
				q.QP, it.conn.QP = it.conn.QP, q
			}
		}
		close(counting)
	}); err != nil {
		w.Fatal(err)
	}
	<-counting
	p.client.reactWith(func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); !ok {
			return
		}
		for range n - 1 {
			ctx.Send(p.c, NewSend([]byte("x")))
		}
		last := NewSend([]byte("y"))
		last.Notify = true
		ctx.Request(p.c, last)
	})
	// the peer's loop: else the scheduler decides how many are complete before the next are posted
	held := make(chan struct{})
	if err := w.far.loops[0].el.Post(func() { <-held }); err != nil {
		w.Fatal(err)
	}
	w.sys.Root.Send(p.client.pid, "go")
	next[string](p.client)
	settle()
	close(held)
	return q
}

// Of messages that are posted in a run only some are to complete, and the last: all are complete
// with that.
func TestRunsCompleteTogether(t *testing.T) {
	inWorld(t, infiniband, func(w *world) {
		const n = 20 * datapath.SendDepth
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: n})
		q := burst(w, p, n)
		next[*Sent](p.client)
		settle()
		p.client.quiet()
		if q.posted != n {
			w.Errorf("%d messages were posted, want %d", q.posted, n)
		}
		if most := datapath.SendDepth + n/4; q.signaled > most {
			w.Errorf("%d of %d messages were to complete, want %d at most", q.signaled, n, most)
		}
		for _, i := range w.rt.Inspect() {
			if c := i.Credits; c.InFlight != 0 || c.Queued != 0 {
				w.Errorf("%d messages in flight and %d queued when all are sent", c.InFlight, c.Queued)
			}
		}
		p.client.send(p.c, &Close{})
		end := until[*Closed](p.client)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != n || c.Unsent+c.Unknown != 0 {
			w.Errorf("the end: %v", end)
		}
	}, Config{Limits: Limits{SendQueue: 20 * datapath.SendDepth, Mailbox: 20 * datapath.SendDepth}})
}

// When a connection ends in the middle of a run, each message is accounted for: those that failed
// are reported, once each, and those that had left in silence are not.
func TestRunsAreCutExactly(t *testing.T) {
	inWorld(t, infiniband, func(w *world) {
		const n, window = 4 * datapath.SendDepth, 3 * datapath.SendDepth
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: window})
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m)
			}
		})
		q := burst(w, p, n)
		settle()
		p.client.quiet() // the last message waits for the window
		if q.posted != window || q.signaled == window {
			w.Errorf("%d posted, %d of them to complete: want %d, and fewer", q.posted, q.signaled, window)
		}
		p.client.send(p.c, &Disconnect{})
		failed := 0
		end := until[*Closed](p.client)
		for _, g := range end {
			if _, ok := g.msg.(*SendFailed); ok {
				failed++
			}
		}
		c := end[len(end)-1].msg.(*Closed)
		if failed != n-window || c.Unsent != n-window || c.Unknown != window || c.Delivered != 0 {
			w.Errorf("%d failed, the end: %v; want %d failed and unsent, %d unknown", failed, c, n-window, window)
		}
	}, Config{Limits: Limits{SendQueue: 4 * datapath.SendDepth, Mailbox: 4 * datapath.SendDepth}})
}

// A posting that fails does not affect the unsignalled ones before it: they have succeeded.
func TestFailureBehindSilentPostings(t *testing.T) {
	inWorld(t, infiniband, func(w *world) {
		p := w.connect()
		l := w.rt.loops[0]
		if err := l.el.Post(func() {
			for it := range l.ids {
				if !it.pid.Equal(p.c) {
					continue
				}
				it.conn.Out.Flight.Push(datapath.Posting{Send: &NewSend([]byte("silent")).out})
				it.conn.Out.Flight.Push(datapath.Posting{Send: &NewSend([]byte("silent")).out})
				last := it.conn.Out.Flight.Push(datapath.Posting{Send: &NewSend([]byte("failed")).out})
				it.conn.Completed(last, verbs.StatusFlushed)
				if n := it.conn.Out.Flight.Len(); n != 0 {
					w.Errorf("%d still in flight behind the last completion", n)
				}
				l.el.Defer(it.conn.Device)
			}
		}); err != nil {
			w.Fatal(err)
		}
		settle()
		f, _ := next[*SendFailed](p.client)
		is(w, f, ErrFlushed)
		p.client.quiet()
	})
}
