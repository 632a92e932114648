package actor

import (
	"bytes"
	"fmt"
	"testing"
)

// largeSizes are around where a large message has one segment more.
var largeSizes = []int{64<<10 + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + 20, 3 << 20, 5<<20 - 7}

// Large messages, with small ones between them, arrive in order and whole.
func exchangeLarge(tb testing.TB, p pair) {
	tb.Helper()
	var want []string
	for i, n := range largeSizes {
		large := bytes.Repeat([]byte{byte(i + 1), byte(n)}, n/2+1)[:n]
		p.client.send(p.c, NewSend(large))
		small := fmt.Sprint("behind ", i)
		p.client.send(p.c, NewSend([]byte(small)))
		want = append(want, string(large), small)
	}
	for i, want := range want {
		if g := p.server.any(); g.data != want {
			tb.Fatalf("message %d has %d bytes, want %d", i, len(g.data), len(want))
		}
	}
	p.client.send(p.c, &Close{})
	for _, side := range []*probe{p.server, p.client} {
		end := until[*Closed](side)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Unknown+c.Unsent != 0 {
			tb.Errorf("the end: %v", end)
		}
	}
}

func large(cfg IDConfig) IDConfig {
	cfg.MaxMessage = 8 << 20
	return cfg
}

func TestSecuredLarge(t *testing.T) {
	onSecured(t, func(w *world, secured mode) { exchangeLarge(w, w.connect(large(secured(w)))) })
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		t.Run("kernel", func(t *testing.T) {
			onKernelLike(t, kernelLike{fail: 3}, func(w *world, _, _ *kernelLike) {
				exchangeLarge(w, w.connect(large(IDConfig{Security: made(w)})))
			})
		})
		t.Run("embedded", func(t *testing.T) {
			sys := testSystem(t)
			rt := openIWARP(t, sys)
			exchangeLarge(t, connect(t, rt, newProbe(t, sys, rt.OnLoop(), nil), newProbe(t, sys, rt.OnLoop(), nil), large(IDConfig{Security: made(t)})))
		})
	})
}

// A connection that ends while a large message is being sealed, or opened, answers for it, and
// releases its memory.
func TestSecuredLargeAtTheEnd(t *testing.T) {
	for _, side := range []string{"sender", "receiver"} {
		t.Run(side, func(t *testing.T) {
			onSecured(t, func(w *world, secured mode) {
				cfg := large(secured(w))
				cfg.MaxMessage = 64 << 20
				p := w.connect(cfg)
				p.client.send(p.c, NewSend(make([]byte, 60<<20)))
				p.client.send(p.c, NewSend([]byte("behind")))
				if side == "sender" {
					p.client.send(p.c, &DestroyID{})
				} else {
					p.server.send(p.s, &DestroyID{})
				}
				end := until[*Closed](p.client)
				if c := end[len(end)-1].msg.(*Closed); c.Unknown+c.Unsent+c.Delivered != 2 {
					w.Errorf("the end: %v", c)
				}
				until[*Closed](p.server)
			})
		})
	}
}

// While large messages are sealed and opened, the loop goes on to its next turn after each segment,
// however many connections they are of.
func TestSecuredLargeTakesTurns(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		const segments = 8
		p := w.connect(large(secured(w)))
		q := w.connectTo(p.server, large(secured(w)))
		next[*Established](p.server)
		sealed, opened, offered := 0, 0, false
		stop := w.eachTurn(w.rt, func(l *loop) {
			c := w.conn(l, p.c)
			if offered = offered || c.Session.Unread() > 0; c.Posted() > 0 && !offered {
				sealed++
			}
		})
		defer stop()
		stop = w.eachTurn(w.far, func(l *loop) {
			if a := w.conn(l, p.s).In.Arrivals; a != nil && a.Waiting.Len() > 0 && a.Begun > segments && a.Begun == a.Done {
				opened++
			}
		})
		defer stop()
		for _, side := range []pair{p, q} {
			side.client.send(side.c, NewSend(make([]byte, segments<<20)))
		}
		for range 2 {
			next[*Received](p.server)
		}
		if sealed < segments || opened < segments {
			w.Errorf("%d segments are sealed in %d turns, and opened in %d", segments, sealed, opened)
		}
	})
}

// eachTurn calls fn in each turn of rt's loop until stop.
func (w *world) eachTurn(rt *Runtime, fn func(l *loop)) (stop func()) {
	over := false
	w.onLoop(rt, func(l *loop) {
		var turn func()
		turn = func() {
			if !over {
				fn(l)
				l.el.AfterFunc(0, turn)
			}
		}
		turn()
	})
	return func() { w.onLoop(rt, func(*loop) { over = true }) }
}
