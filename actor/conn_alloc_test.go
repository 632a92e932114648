//go:build !race

package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// In its steady state an echo between two OnLoop actors has no allocation of this module's.
func TestEchoAllocatesNothing(t *testing.T) { echoAllocatesNothing(t, IDConfig{}) }

// Nor has it on a secured connection.
func TestSecuredEchoAllocatesNothing(t *testing.T) { echoAllocatesNothing(t, secured(t)) }

func TestTLSEchoAllocatesNothing(t *testing.T) {
	sec := mtls(t)
	now := time.Now() // the world's is another
	sec.TLS.Time = func() time.Time { return now }
	echoAllocatesNothing(t, IDConfig{Security: sec})
}

func echoAllocatesNothing(t *testing.T, cfg IDConfig) {
	t.Helper()
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect(cfg)
		done := make(chan struct{}, 1)
		var left int
		echo := actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				ctx.Respond(NewSend(m.Data))
			}
		}, w.far.OnLoop())
		ping := actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *Received:
				if left--; left == 0 {
					done <- struct{}{}
					return
				}
				ctx.Respond(NewSend(m.Data))
			case int:
				left = m
				ctx.Send(p.c, NewSend(make([]byte, 64)))
			}
		}, w.rt.OnLoop())
		a, b := w.sys.Root.Spawn(ping), w.sys.Root.Spawn(echo)
		p.client.send(p.c, &Handover{To: a})
		p.server.send(p.s, &Handover{To: b})
		next[*Done](p.client)
		next[*Done](p.server)
		const rounds = 2000
		run := func() {
			w.sys.Root.Send(a, rounds)
			<-done
		}
		run()
		perEcho := testing.AllocsPerRun(3, run) / rounds
		if perEcho > 0.1 && !overwrite.On {
			w.Errorf("%.2f allocations per echo", perEcho)
		}
	})
}

// instant is a queue pair that completes without doing anything.
type instant struct {
	verbs.QP
	last uint64
}

func (q *instant) PostSend(wr *verbs.SendWR) error {
	q.last = wr.ID
	return nil
}

// counting counts the operations that it owns.
type counting int

func (n *counting) Ended(*datapath.Conn, *datapath.OneSided, error) { *n++ }

func (n *counting) Abandoned(*datapath.Conn, *datapath.OneSided) {}

// A one-sided operation has no allocation of this module's.
func TestOneSidedAllocatesNothing(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		r := w.reach(64)
		w.onLoop(w.rt, func(l *loop) {
			c := w.conn(l, r.c)
			q, n := &instant{QP: c.QP}, new(counting)
			c.QP = q
			o := r.op(verbs.Read, 0, 64)
			o.Issuer = n
			if per := testing.AllocsPerRun(1000, func() {
				if err := c.OneSided(o); err != nil {
					w.Error(err)
				}
				c.Completed(uint32(q.last), verbs.StatusSuccess)
			}); per != 0 || *n != 1001 {
				w.Errorf("%.2f allocations for each of %d operations", per, *n)
			}
			c.QP = q.QP
			l.el.Defer(c.Device)
		})
	})
}

// Memory is read and written without an allocation, and without a look-up of the goroutine.
func TestMemoryAllocatesNothing(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect(IDConfig{Memory: 64})
		m := memory(p.client, p.c, 64, 0)
		var b [8]byte
		w.onLoop(w.rt, func(*loop) {
			if per := testing.AllocsPerRun(1000, func() {
				if _, err := m.WriteAt(b[:], 8); err != nil {
					w.Error(err)
				}
				if _, err := m.ReadAt(b[:], 8); err != nil {
					w.Error(err)
				}
			}); per != 0 && !overwrite.On {
				w.Errorf("%.2f allocations", per)
			}
		})
	})
}
