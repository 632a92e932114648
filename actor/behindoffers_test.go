package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// An owner retains requests until its answer has left, which is a large one: the peer reads it. The
// connection is still read, because the peer's Read comes behind further requests.
func TestReadOfAnswerBehindMessages(t *testing.T) { readOfAnswer(t, nil) }

// The same where the answer is sealed before it is offered.
func TestReadOfSecuredAnswerBehindMessages(t *testing.T) { readOfAnswer(t, psk(t)) }

func readOfAnswer(t *testing.T, s *Security) {
	t.Helper()
	const size, requests, answer = 64 << 10, 12, 200 << 10
	onFlavors(t, func(w *world) {
		const hoards = 40
		g := greed{tb: w, server: w.far, client: w.rt, where: w.far.OffLoop(), listen: there + ":7471", peers: 1, each: hoards, size: size}
		g.begin() // takes half of the shared memory
		settle()
		var kept []*Received
		answerer := newProbe(w, w.sys, w.far.OnLoop(), func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Received:
				if kept = append(kept, m.Retain()); len(kept) == 1 {
					ctx.Respond(NewSend(make([]byte, answer)))
				}
			}
		})
		_, at := listen(answerer, w.far, there+":7472")
		asker := newProbe(w, w.sys, w.rt.OnLoop(), nil)
		id := w.rt.CreateID(asker.pid, IDConfig{MaxMessage: answer})
		asker.send(id, &Dial{Addr: at})
		next[*Established](asker)
		for range requests {
			asker.send(id, NewSend(make([]byte, size)))
		}
		next[*Received](asker)
		releaseAll(w, &kept, requests)
		g.h.release()
		g.await("everything", func() bool { return g.h.all == hoards })
		g.finish()
	}, Config{Security: s, Limits: Limits{ReceiveMemory: 8 << 20}})
}

// An owner retains nothing, and others all shared memory. A large message arrives nevertheless. Its
// Read is answered behind messages that were sent after it, and these are received although they
// have to wait for it.
func TestReadOfOfferBehindMessages(t *testing.T) {
	const size, requests, large = 60 << 10, 18, 200 << 10
	const peers, hoards, kept = 2, 40, 21 // two thirds of the shared memory
	sys, cfg := testSystem(t), Config{Limits: Limits{ReceiveMemory: 8 << 20}}
	g := greed{tb: t, server: openIWARP(t, sys, cfg), client: openIWARP(t, sys), listen: "127.0.0.1:0", peers: peers, each: hoards, size: size}
	g.where = g.server.OffLoop()
	g.begin()
	g.await("what is shared", func() bool { return g.h.all >= kept })
	taker := newProbe(t, sys, g.server.OnLoop(), func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			ctx.Respond(&Accept{})
		}
	})
	_, at := listen(taker, g.server, "127.0.0.1:0", IDConfig{MaxMessage: large})
	sender := newProbe(t, sys, g.client.OnLoop(), func(ctx actor.Context) {
		if _, ok := ctx.Message().(*Established); !ok {
			return
		}
		ctx.Respond(NewSend(make([]byte, large)))
		for range requests { // in the same turn: before the Read can have come
			ctx.Respond(NewSend(make([]byte, size)))
		}
	})
	sender.send(g.client.CreateID(sender.pid, IDConfig{}), &Dial{Addr: at})
	until[*Established](taker)
	for i := range 1 + requests {
		if m := taker.any(); kinds([]got{m}) != "Received" {
			t.Fatalf("message %d: %v", i, m)
		}
	}
	g.h.release()
	g.await("everything", func() bool { return g.h.all == peers*hoards })
	g.finish()
}
