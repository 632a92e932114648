package actor

import (
	"math"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// liar returns a hello that claims the largest receives, and that its sender accepts everything.
func liar() []byte {
	return wire.Hello{Credits: math.MaxUint16, Eager: wire.MaxEager, MaxMessage: math.MaxUint32}.Put(nil)
}

// sentFrom returns how many bytes of memory a loop has registered for eager sends.
func (w *world) sentFrom(rt *Runtime) (n int) {
	w.onLoop(rt, func(l *loop) {
		for _, d := range l.Devices {
			for dm := range d.Domains {
				for _, a := range dm.Send {
					if a != nil {
						for _, s := range a.Slabs {
							n += len(s.MR.Bytes)
						}
					}
				}
			}
		}
	})
	return n
}

// A peer's claims about its receives do not decide how much memory is registered to send from. On a
// device that cannot send from the heap, a message above this side's eager limit is offered, and
// Limits.SendMemory bounds the offers.
func TestLyingHello(t *testing.T) {
	const limit = 8 << 20
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		if w.flavor != 0 {
			// a peer that has no receive ends its connection there, and the memory of its messages
			// is free again
			return
		}
		server, mallory := w.farProbe(), w.probe()
		mallory.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m)
			}
		})
		server.reactWith(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Established:
				for range 200 {
					ctx.Respond(NewSendBuffer(1 << 20))
				}
			}
		})
		w.listen(server, IDConfig{MaxMessage: 1 << 20, Credits: 32})
		id := w.rt.CreateID(mallory.pid, IDConfig{Raw: true, MaxMessage: 2 << 20, Credits: 1})
		mallory.send(id, &Dial{Addr: there + ":7471", PrivateData: liar()})
		next[*Established](mallory)
		settle()
		if n := w.sentFrom(w.far); n > limit {
			w.Errorf("%d bytes are registered to send from, and the limit is %d", n, limit)
		}
		if _, out := w.budgets(w.far); out > limit {
			w.Errorf("%d bytes are offered, and the limit is %d", out, limit)
		}
	}, Config{Limits: Limits{SendMemory: limit}})
}

// Peers that take nothing leave memory to send from for those that do, and all of it together stays
// within Limits.SendMemory and one message for each connection.
func TestSendMemoryIsBounded(t *testing.T) {
	const limit, peers, size = 1 << 20, 16, 16 << 10
	onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
		if w.flavor != 0 {
			return // a receiver without a receive ends its connection there
		}
		server := w.farProbe()
		server.reactWith(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Established:
				for range 200 {
					ctx.Respond(NewSendBuffer(size))
				}
			case *Received:
				ctx.Respond(NewSend(m.Data))
			}
		})
		w.listen(server, IDConfig{MaxMessage: size, Credits: 128})
		for range peers {
			mallory := w.probe()
			mallory.reactWith(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*Received); ok {
					keep(w, m)
				}
			})
			mallory.send(w.rt.CreateID(mallory.pid, IDConfig{Raw: true, MaxMessage: size, Credits: 1}), &Dial{Addr: there + ":7471", PrivateData: liar()})
			next[*Established](mallory)
		}
		settle()
		if n := w.sentFrom(w.far); n > limit+peers*size {
			w.Errorf("%d bytes are registered to send from, and the limit is %d", n, limit)
		}
		good := w.probe()
		id := w.rt.CreateID(good.pid, IDConfig{MaxMessage: size, Credits: 128})
		good.send(id, &Dial{Addr: there + ":7471"})
		next[*Established](good)
		for range 200 {
			next[*Received](good)
		}
		for range 50 {
			good.send(id, NewSend(make([]byte, size)))
		}
		for range 50 {
			next[*Received](good)
		}
		if n := w.sentFrom(w.far); n > limit+(peers+1)*size {
			w.Errorf("%d bytes are registered to send from, and the limit is %d", n, limit)
		}
	}, Config{Limits: Limits{SendMemory: limit}})
}
