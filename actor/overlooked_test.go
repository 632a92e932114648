package actor

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// soon is when the peer has what its device has overlooked, at the latest: the probe is sent a
// quarter of a second after Established.
const soon = 251 * time.Millisecond

// onSoftIWARP runs test on the devices that may overlook a first message.
func onSoftIWARP(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Run("asks", func(t *testing.T) { inWorld(t, states.IWARP, test) })
	t.Run("reserves", func(t *testing.T) {
		near, far := new(kernelLike), new(kernelLike)
		inWorldOfTwo(t, states.IWARP, near.over, far.over, test)
	})
}

// probed returns how many probes, answers and credit updates both sides have received.
func (w *world) probed(p pair) (n uint32) {
	w.onLoop(w.rt, func(l *loop) { n += w.conn(l, p.c).Session.Beats() })
	w.onLoop(w.far, func(l *loop) { n += w.conn(l, p.s).Session.Beats() })
	return n
}

// A first message that the peer's device has overlooked is there a quarter of a second later, and
// the connection goes on. So is a large message.
func TestOverlookedFirstMessage(t *testing.T) {
	for name, size := range map[string]int{"small": 5, "large": 200_000} {
		t.Run(name, func(t *testing.T) {
			onSoftIWARP(t, func(w *world) {
				w.f.Overlook(1)
				p := w.connect(IDConfig{MaxMessage: 1 << 20})
				first := pattern(size, 1)
				took := elapsed(func() {
					p.client.send(p.c, NewSend(first))
					if g := p.server.any(); g.data != string(first) {
						w.Errorf("the peer got %v", g)
					}
				})
				if took > soon {
					w.Errorf("the first message took %v", took)
				}
				for _, s := range []string{"a", "b"} {
					p.client.send(p.c, NewSend([]byte(s)))
					if g := p.server.any(); g.data != s {
						w.Errorf("the peer got %v, want %q", g, s)
					}
				}
				time.Sleep(10 * time.Second)
				p.client.quiet()
				p.server.quiet()
			})
		})
	}
}

// Messages behind it have the first message noticed, and so has a Close. No probe is needed.
func TestOverlookedUntilMoreComes(t *testing.T) {
	onSoftIWARP(t, func(w *world) {
		w.f.Overlook(2)
		p := w.connect()
		took := elapsed(func() {
			for _, s := range []string{"1", "2", "3"} {
				p.client.send(p.c, NewSend([]byte(s)))
			}
			for _, s := range []string{"1", "2", "3"} {
				if g := p.server.any(); g.data != s {
					w.Errorf("the peer got %v, want %q", g, s)
				}
			}
		})
		if took != 0 {
			w.Errorf("they took %v", took)
		}
		p.client.send(p.listener, &DestroyID{})
		until[*Closed](p.server)

		p = w.connect()
		took = elapsed(func() {
			p.client.send(p.c, NewSend([]byte("last")))
			p.client.send(p.c, &Close{})
			all := until[*Closed](p.client)
			if c := all[len(all)-1].msg.(*Closed); c.Err != nil || c.Delivered != 1 {
				w.Errorf("closed: %v, %d delivered", c.Err, c.Delivered)
			}
		})
		if took != 0 {
			w.Errorf("a Close behind it took %v", took)
		}
	})
}

// A probe is sent for the sake of a first message only if the device may overlook one, if something
// was sent and if nothing was heard. There is one at most.
func TestFirstProbe(t *testing.T) {
	send := func(p pair) { p.client.send(p.c, NewSend([]byte("x"))) }
	for _, tt := range []struct {
		name string
		do   func(p pair)
		want uint32 // on devices that overlook messages; on others 0
	}{
		{"nothing is sent", func(pair) {}, 0},
		{"it is answered", func(p pair) {
			send(p)
			next[*Received](p.server)
			p.server.send(p.s, NewSend([]byte("y")))
			next[*Received](p.client)
		}, 0},
		{"it is not answered", func(p pair) {
			for range 3 {
				send(p)
				next[*Received](p.server)
			}
		}, 2},
		{"the responder has sent", func(p pair) {
			p.server.send(p.s, NewSend([]byte("y")))
			next[*Received](p.client)
		}, 2},
		{"it is sent later", func(p pair) {
			time.Sleep(time.Second)
			send(p)
			next[*Received](p.server)
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onAllKinds(t, func(w *world) {
				p := w.connect()
				tt.do(p)
				time.Sleep(9 * time.Second) // before the keepalive's
				want := tt.want
				if w.flavor == 0 {
					want = 0
				}
				if n := w.probed(p); n != want {
					w.Errorf("%d probes and answers, want %d", n, want)
				}
				p.client.quiet()
				p.server.quiet()
			})
		})
	}
}

// The peer of a raw connection gets no probe.
func TestRawHasNoFirstProbe(t *testing.T) {
	onSoftIWARP(t, func(w *world) {
		p := w.connect(IDConfig{Raw: true})
		p.client.send(p.c, NewSend([]byte("x")))
		if g := p.server.any(); g.data != "x" {
			w.Errorf("the peer got %v", g)
		}
		time.Sleep(10 * time.Second)
		p.server.quiet()
	})
}

// A peer that does not answer the probe is given up when the keepalive does that.
func TestFirstProbeIsNotAnswered(t *testing.T) {
	onSoftIWARP(t, func(w *world) {
		p := w.connect()
		w.f.Host("far").Freeze()
		defer w.f.Host("far").Thaw()
		p.client.send(p.c, NewSend([]byte("x")))
		gone(w, p.client, time.Now(), 40*time.Second, 30*time.Second)
	})
}
