package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// routed listens there, on the first loop, with a Route.
func (w *world) routed(route func(r *ConnectRequest) (*actor.PID, *Reject)) (owner *probe) {
	owner = newProbe(w, w.sys, onLoop(w.far.loops[0]), nil)
	w.listen(owner, IDConfig{Route: route})
	return owner
}

// Whom Route names owns the connection, on his own loop, from the request on. The listener's owner
// does not hear of it. The private data is the user's.
func TestRouteNamesTheOwner(t *testing.T) {
	onFlavors(t, func(w *world) {
		named := newProbe(w, w.sys, onLoop(w.far.loops[2]), nil)
		var asked []string
		owner := w.routed(func(r *ConnectRequest) (*actor.PID, *Reject) {
			asked = append(asked, string(r.PrivateData[:2]))
			return named.pid, nil
		})
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, &Dial{Addr: there + ":7471", PrivateData: []byte("hi")})
		r, s := next[*ConnectRequest](named)
		if len(asked) != 1 || asked[0] != "hi" || string(r.PrivateData[:2]) != "hi" || r.Foreign {
			w.Errorf("asked about %q, and the request says %v", asked, r)
		}
		if w.runs(s) != w.far.loops[2] {
			w.Errorf("the connection lives on %v", w.runs(s).el.Name())
		}
		named.send(s, &Accept{})
		next[*Established](named)
		next[*Established](p)
		p.send(id, NewSend([]byte("x")))
		next[*Received](named)
		owner.quiet()
		wantCounts(w, "with a listener and a connection", w.far, 1, 0, 1)
	}, Config{Loops: make([]eventloop.Config, 3)})
}

// Without an answer of Route's the request is the listener's owner's, or its Handler's.
func TestRouteThatNamesNobody(t *testing.T) {
	onFlavors(t, func(w *world) {
		nobody := func(*ConnectRequest) (*actor.PID, *Reject) { return nil, nil }
		owner := w.routed(nobody)
		p := w.probe()
		w.dial(p, 1)
		_, s := next[*ConnectRequest](owner)
		owner.send(s, &Reject{})
		until[*Closed](p)
		w.sys.Root.Stop(owner.pid)
		settle()
		came := make(chan arrival, 1)
		w.listen(w.farProbe(), IDConfig{Handler: handlers(came, echoing), Route: nobody})
		w.dial(p, 1)
		next[*Established](p)
		<-came
	})
}

// A request that Route turns away hears why, and leaves nothing.
func TestRouteRejects(t *testing.T) {
	onFlavors(t, func(w *world) {
		owner := w.routed(func(*ConnectRequest) (*actor.PID, *Reject) { return nil, &Reject{PrivateData: []byte("full")} })
		p := w.probe()
		for range 3 {
			w.dial(p, 1)
			if r, _ := next[*Rejected](p); string(r.PrivateData[:4]) != "full" {
				w.Errorf("rejected with %q", r.PrivateData)
			}
			next[*Closed](p)
		}
		settle()
		owner.quiet()
		wantCounts(w, "after three rejections", w.far, 1, 0)
	}, Config{Loops: make([]eventloop.Config, 2)})
}

// A Route that names an owner that cannot answer costs its request, immediately, and nothing else.
func TestRouteNamesTheWrongOne(t *testing.T) {
	for name, of := range map[string]func(w *world) *actor.PID{
		"one that has stopped": func(w *world) *actor.PID {
			p := w.farProbe()
			_ = w.sys.Root.StopFuture(p.pid).Wait()
			return p.pid
		},
		"one elsewhere": func(*world) *actor.PID { return actor.NewPID("10.9.9.9:1", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				wrong := of(w)
				w.routed(func(*ConnectRequest) (*actor.PID, *Reject) { return wrong, nil })
				p := w.probe()
				if took := elapsed(func() { w.dial(p, 1); until[*Closed](p) }); took > patience/100 {
					w.Errorf("its peer has waited for %v", took)
				}
				settle()
				wantCounts(w, "afterwards", w.far, 1, 0)
			}, Config{Loops: make([]eventloop.Config, 2)})
		})
	}
}

// A Route that does not return costs its request.
func TestRouteThatDoesNotReturn(t *testing.T) {
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				panicked := 0
				sub := w.sys.EventStream.Subscribe(func(ev any) {
					if _, ok := ev.(*Panicked); ok {
						panicked++
					}
				})
				defer w.sys.EventStream.Unsubscribe(sub)
				wrong := true
				owner := w.routed(func(*ConnectRequest) (*actor.PID, *Reject) {
					if wrong {
						leave()
					}
					return nil, nil
				})
				p := w.probe()
				for range 3 {
					w.dial(p, 1)
					next[*Rejected](p)
					next[*Closed](p)
				}
				settle()
				wrong = false
				if panicked != 3 {
					w.Errorf("%d of 3 were published", panicked)
				}
				wantCounts(w, "afterwards", w.far, 1, 0)
				w.dial(p, 1)
				_, s := next[*ConnectRequest](owner)
				owner.send(s, &Accept{})
				next[*Established](p)
			}, Config{Loops: make([]eventloop.Config, 2)})
		})
	}
}
