package actor

import (
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// The largest message that Established speaks of comes, however odd the limit, and after whatever
// was received before it.
func TestTheLargestMessageComes(t *testing.T) {
	for _, limit := range []int{200 << 10, 1<<20 + 4321, 2 << 20, 5_000_001} {
		test := func(w *world) { largestComes(w, w.connect(IDConfig{MaxMessage: 1 << 30, Credits: 4})) }
		if limit < 1<<20 {
			// too little for receives beforehand
			onFlavors(t, test, Config{Limits: Limits{ReceiveMemory: limit}})
			continue
		}
		onAllKinds(t, test, Config{Limits: Limits{ReceiveMemory: limit}})
	}
}

func largestComes(w *world, p pair) {
	w.Helper()
	n := 0
	w.onLoop(w.rt, func(l *loop) { n = w.conn(l, p.c).MaxMessage() })
	p.client.send(p.c, NewSend([]byte("first")))
	p.client.send(p.c, NewSend(pattern(n, 1)))
	if g := p.server.any(); g.data != "first" {
		w.Errorf("got %v", g)
	}
	if g := p.server.any(); g.data != string(pattern(n, 1)) {
		w.Errorf("%d bytes came as %d others", n, len(g.data))
	}
}

// Memory that connections which have gone received into is there for a large message.
func TestALargeMessageAfterOthersThatWereRaw(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 30, Credits: 4})
		server, client := w.farProbe(), w.probe()
		lis, at := listen(server, w.far, there+":7472", IDConfig{Raw: true, MaxMessage: 1 << 20, Credits: 4})
		c := w.rt.CreateID(client.pid, IDConfig{Raw: true, MaxMessage: 1 << 20, Credits: 4})
		client.send(c, &Dial{Addr: at})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](client)
		next[*Established](server)
		client.send(c, NewSend(make([]byte, 100)))
		next[*Received](server)
		client.send(c, &Disconnect{})
		until[*Closed](client)
		until[*Closed](server)
		server.send(lis, &DestroyID{})
		largestComes(w, p)
	}, Config{Limits: Limits{ReceiveMemory: 16 << 20}})
}

// An owner keeps its messages, and another one is too large for the rest of the memory: others'
// messages go on beside it.
func TestALargeMessageThatWaitsStopsNobody(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const all = 16 << 20
		p := w.connect(IDConfig{MaxMessage: all / 2, Credits: 32})
		var kept *Received
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok && len(m.Data) == all/2 {
				kept = m.Retain()
			}
		})
		p.client.send(p.c, NewSend(make([]byte, all/2)))
		next[*Received](p.server)
		waits := w.connectTo(p.server, IDConfig{MaxMessage: all / 2, Credits: 32})
		next[*Established](p.server)
		waits.client.send(waits.c, NewSend(make([]byte, all/3)))
		settle()
		for i := range 5 {
			other := w.connectTo(p.server, IDConfig{MaxMessage: all / 2, Credits: 32})
			next[*Established](p.server)
			for range 5 {
				other.client.send(other.c, NewSend(pattern(200<<10, i)))
				settle()
				if len(p.server.got) == 0 {
					w.Fatal("nothing comes behind a message that waits for memory")
				}
				if g := p.server.any(); g.data != string(pattern(200<<10, i)) {
					w.Errorf("got %d bytes", len(g.data))
				}
			}
		}
		w.onLoop(w.far, func(*loop) { kept.Release() })
		if g := p.server.any(); len(g.data) != all/3 {
			w.Errorf("got %d bytes", len(g.data))
		}
	}, Config{Limits: Limits{ReceiveMemory: 16 << 20}})
}

// A connection that could not receive a single message of the size it allows is refused, when it is
// made.
func TestAReceiveThatDoesNotFit(t *testing.T) {
	onAllKinds(t, func(w *world) {
		p := w.probe()
		p.send(w.rt.CreateID(p.pid, IDConfig{Raw: true, MaxMessage: 1 << 20, Credits: 1}), &Dial{Addr: there + ":7471"})
		f, _ := next[*CommandFailed](p)
		var r *ResourceError
		if !errors.As(f, &r) {
			w.Errorf("refused with %v", f)
		}
		until[*Closed](p)
	}, Config{Limits: Limits{ReceiveMemory: 1 << 20}})
}
