package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop"
)

const someHint = 0xFEEDBEE5

// A request's hint chooses the loop of a secured connection, and nothing else: Route chooses its
// owner, once the peer is authenticated.
func TestPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		hint  uint32
		near  func(near *actor.PID) *actor.PID
		asked bool
		moved int // of 6 connections, to the second loop
	}{
		"known":     {someHint, func(near *actor.PID) *actor.PID { return near }, true, 6},
		"no hint":   {0, func(near *actor.PID) *actor.PID { return near }, false, 3},
		"not known": {someHint, func(*actor.PID) *actor.PID { return nil }, true, 3},
		"nobody":    {someHint, func(*actor.PID) *actor.PID { return actor.NewPID("elsewhere:1", "x") }, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				near := newProbe(w, w.sys, w.far.OnLoop(), nil)
				for w.runs(near.pid) != w.far.loops[1] {
					near = newProbe(w, w.sys, w.far.OnLoop(), nil)
				}
				owner, client := newProbe(w, w.sys, w.far.OffLoop(), nil), w.probe()
				cfg, asked := secured(w), false
				cfg.Place = func(hint uint32) *actor.PID {
					asked = true
					if hint != tt.hint {
						w.Errorf("the hint is %x, want %x", hint, tt.hint)
					}
					return tt.near(near.pid)
				}
				w.listen(owner, cfg)
				dialler := secured(w)
				dialler.Hint = tt.hint
				moved := 0
				for range 6 {
					client.send(w.rt.CreateID(client.pid, dialler), &Dial{Addr: there + ":7471"})
					_, s := next[*ConnectRequest](owner)
					if w.runs(s) == w.far.loops[1] {
						moved++
					}
					owner.send(s, &Accept{})
					next[*Established](client)
					next[*Established](owner)
				}
				if asked != tt.asked || moved < tt.moved || tt.moved < 6 && moved == 6 {
					w.Errorf("Place was asked: %v; %d connections of 6 are on the second loop", asked, moved)
				}
				near.quiet() // it owns nothing
			}, Config{Loops: make([]eventloop.Config, 2)})
		})
	}
}

// A Place that does not return costs the request only, and the peer learns nothing.
func TestPlaceFails(t *testing.T) {
	for name, place := range map[string]func(uint32) *actor.PID{
		"panics": func(uint32) *actor.PID { panic("place") },
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				owner, client := w.farProbe(), w.probe()
				cfg := secured(w)
				cfg.Place = place
				lis := w.listen(owner, cfg)
				dialler := secured(w)
				dialler.Hint = someHint
				client.send(w.rt.CreateID(client.pid, dialler), &Dial{Addr: there + ":7471"})
				next[*Rejected](client)
				next[*Closed](client)
				settle()
				for _, i := range w.far.Inspect() {
					if i.PID.Equal(lis) && (i.Listener.Refused.Failed != 1 || i.Listener.Pending != 0) {
						w.Errorf("the listener's counts: %+v", i.Listener)
					}
				}
			})
		})
	}
}

// A hint that was changed on its way may send the request to another loop. There is no connection.
func TestHintIsBound(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
			if m == cmidtest.MsgREQ {
				b[15] ^= 1
			}
			return b
		})
		w.noConnection()
	})
}
