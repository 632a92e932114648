package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
)

// A peer that offers large messages, does not answer the Reads, and comes back as soon as it has
// been given up, or leaves before that and comes back: another peer's messages keep flowing.
func TestLyingPeerComesBack(t *testing.T) {
	const all = 2 << 20
	for name, tt := range map[string]struct {
		lie, honest int
		leaves      time.Duration // how long the liar stays
		waits       time.Duration // how long the honest peers may wait, in all
	}{
		"large":            {all / 2, all / 4, time.Hour, 0},
		"smaller":          {all / 16, all / 4, time.Hour, 0},
		"half of all":      {all / 2, all / 2, time.Hour, 3 * time.Minute},
		"half, and leaves": {all / 2, all / 2, 5 * time.Second, 3 * time.Minute},
		"many, and leave":  {all / 16, all / 2, 10 * time.Second, 3 * time.Minute},
		"small ones":       {20 << 10, all / 4, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				lasts := 10 * time.Minute
				waits := tt.waits
				if testing.Short() { // the race detector looks at each byte
					lasts, waits = lasts/3, waits/3
				}
				p := w.connect(IDConfig{MaxMessage: all / 2, Credits: 8, eager: kib})
				served := w.deafTo(p.server, "10.0.0.9")
				w.f.Host("third").AddDevice("mem2", "10.0.0.9")
				third := w.open(w.f.Host("third").Driver(), Config{})
				over := false
				w.lie(third, 4, tt.lie, tt.leaves, &over)
				time.Sleep(time.Second)
				var waited time.Duration
				for begin := time.Now(); time.Since(begin) < lasts; time.Sleep(time.Second) {
					p.client.send(p.c, NewSendBuffer(tt.honest))
					waited += elapsed(func() {
						if n := <-served; n != tt.honest {
							w.Errorf("%d bytes came as %d", tt.honest, n)
						}
					})
				}
				if waited > waits {
					w.Errorf("the honest peer's messages have waited for %v of %v, want at most %v", waited, lasts, waits)
				}
				done := make(chan struct{})
				_ = third.loops[0].el.Post(func() { over = true; close(done) })
				<-done
				time.Sleep(time.Hour)
				w.onLoop(w.far, func(l *loop) {
					if n, dubious := l.Sources.Remembered(); n != 0 || dubious != 0 {
						w.Errorf("%d addresses are still remembered, and %d bytes of them", n, dubious)
					}
				})
			}, Config{Limits: Limits{ReceiveMemory: all}})
		})
	}
}

// deafTo makes a listener's owner accept all. Reads on connections from addr are not answered.
// It returns the lengths of the messages that other connections bring.
func (w *world) deafTo(server *probe, addr string) <-chan int {
	served := make(chan int, 100)
	deafs := make(map[string]*datapath.Conn)
	server.reactWith(func(ctx actor.Context) {
		for len(server.got) > 0 {
			<-server.got
		}
		switch m := ctx.Message().(type) {
		case *ConnectRequest:
			ctx.Respond(&Accept{})
		case *Established:
			var c *datapath.Conn
			for it := range w.far.loops[0].ids {
				if it.pid.Equal(ctx.Sender()) {
					c = it.conn
				}
			}
			if c != nil && c.ID.PeerAddr().Addr().String() == addr {
				deafs[ctx.Sender().Id] = c
				c.QP = &deaf{QP: c.QP}
			}
		case *Closed:
			if c := deafs[ctx.Sender().Id]; c != nil && c.In.Arrivals != nil {
				for c.In.Arrivals.Begun != c.In.Arrivals.Done {
					// the real queue pair would have done this
					c.In.Arrivals.Ended(c, nil, datapath.Flushed())
				}
			}
		case *Received:
			served <- len(m.Data)
		}
	})
	return served
}

// lie makes connections that offer large messages all the time.
func (w *world) lie(rt *Runtime, conns, size int, stays time.Duration, over *bool) {
	type leave struct{ id *actor.PID }
	dial := func(ctx actor.Context) {
		ctx.Request(rt.CreateID(ctx.Self(), IDConfig{MaxMessage: 1 << 20, Credits: 8, eager: kib}), &Dial{Addr: there + ":7471"})
	}
	w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			for range conns {
				dial(ctx)
			}
		case *Established:
			for range 4 {
				ctx.Send(ctx.Sender(), NewSendBuffer(size))
			}
			After(ctx, stays, leave{ctx.Sender()})
		case leave:
			ctx.Send(m.id, &DestroyID{})
		case *Closed:
			if !*over {
				dial(ctx)
			}
		}
	}, rt.OnLoop()))
}
