package actor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/states"
)

// mallory connects a raw peer that pretends to speak the message protocol.
func (w *world) mallory(server *probe) (m *probe, id, s *actor.PID) {
	w.Helper()
	m = w.probe()
	w.listen(server)
	id = w.rt.CreateID(m.pid, IDConfig{Raw: true})
	m.send(id, &Dial{Addr: there + ":7471", PrivateData: wire.Hello{Credits: 2, Eager: kib, MaxMessage: kib}.Put(nil)})
	_, s = next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	next[*Established](m)
	return m, id, s
}

// A connection has one end, which is reported once, with the cause that was found first. Other ends
// in the same turn, the order in which the device reports them, and the time that it takes to
// return the identifier make no difference.
func TestOneEndIsReported(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "slow to destroy": time.Second} {
		for flavor, f := range flavors {
			for i := range 20 {
				t.Run(fmt.Sprintf("%s/%s/%d", name, flavor, i), func(t *testing.T) {
					far := &kernelLike{takes: map[states.Op]time.Duration{states.OpDestroyID: takes}}
					inWorldOfTwo(t, f, untouched, far.over, func(w *world) { oneEnd(w) })
				})
			}
		}
	}
}

func oneEnd(w *world) {
	server := w.farProbe()
	mallory, id, s := w.mallory(server)
	mallory.reactWith(func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); ok {
			ctx.Send(id, NewSend([]byte("x"))) // not even a header
			ctx.Send(id, &Disconnect{})        // arrives in the same turn
		}
	})
	w.f.Reorder(true)
	w.sys.Root.Send(mallory.pid, "go")
	end := until[*Closed](server)
	for len(end) == 1 && !end[0].sender.Equal(s) {
		end = until[*Closed](server)
	}
	if k := kinds(end); k != "Disconnected Closed" {
		w.Fatalf("got %s", k)
	}
	var p *ProtocolError
	d, c := end[0].msg.(*Disconnected), end[1].msg.(*Closed)
	if !errors.As(d.Err, &p) || !errors.As(c.Err, &p) {
		w.Errorf("Disconnected has %v and Closed %v, want the ProtocolError", d.Err, c.Err)
	}
	until[*Closed](mallory)
	time.Sleep(time.Minute)
	settle()
	server.quiet()
}

// The sender of a Disconnect is answered with the connection's only end, also when the peer breaks
// the protocol before the answer.
func TestDisconnectMeetsAViolation(t *testing.T) {
	onFlavors(t, func(w *world) {
		server := w.farProbe()
		mallory, id, s := w.mallory(server)
		asker := w.farProbe()
		mallory.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				ctx.Send(id, NewSend([]byte("x")))
			}
		})
		w.f.Drop(cmidtest.MsgDREQ, 1)
		asker.send(s, &Disconnect{})
		w.sys.Root.Send(mallory.pid, "go")
		if d, _ := next[*Disconnected](asker); d == nil {
			w.Error("no answer")
		}
		if k := kinds(until[*Closed](server)); k != "Disconnected Closed" {
			w.Errorf("got %s", k)
		}
		w.sys.Root.Send(id, &DestroyID{})
		until[*Closed](mallory)
		asker.quiet()
	})
}

// A Manual owner is notified of an end once, and ends the identifier itself.
func TestManualLearnsOfAViolation(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		server := w.farProbe()
		m := w.probe()
		w.listen(server, IDConfig{Manual: true})
		id := w.rt.CreateID(m.pid, IDConfig{Raw: true})
		m.send(id, &Dial{Addr: there + ":7471", PrivateData: wire.Hello{Credits: 2, Eager: kib, MaxMessage: kib}.Put(nil)})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](m)
		m.send(id, NewSend([]byte("x")))
		var p *ProtocolError
		if d, _ := next[*Disconnected](server); !errors.As(d.Err, &p) {
			w.Errorf("Disconnected has %v", d.Err)
		}
		time.Sleep(time.Minute)
		settle()
		server.quiet()
		if st, ok := w.state(s); !ok || st != states.Connected {
			w.Errorf("the identifier is %v (%v), although its owner is Manual", st, ok)
		}
		server.send(s, &Disconnect{})
		next[*Disconnected](server)
		server.send(s, &DestroyID{})
		if c, _ := next[*Closed](server); !errors.As(c.Err, &p) {
			w.Errorf("Closed has %v", c.Err)
		}
		until[*Closed](m)
	})
}

// Close notifies a Manual owner of the end, as it notifies every other.
func TestManualClose(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect(IDConfig{Manual: true})
		p.client.send(p.c, &Close{})
		if k := kinds(until[*Closed](p.client)); k != "Disconnected Closed" {
			w.Errorf("got %s", k)
		}
		w.sys.Root.Send(p.s, &DestroyID{})
		until[*Closed](p.server)
	})
}
