package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// An owner keeps requests until its answers have left. Its connection is still read, for the
// credits of the answers, which come behind further requests.
func TestCreditsBehindMessages(t *testing.T) {
	const size, requests, answers = 64 << 10, 12, 100
	onFlavors(t, func(w *world) {
		const hoards = 40
		g := greed{tb: w, server: w.far, client: w.rt, where: w.far.OffLoop(), listen: there + ":7471", peers: 1, each: hoards, size: size}
		g.begin() // takes half of the shared memory
		settle()
		var kept []*Received
		answered := false
		answerer := newProbe(w, w.sys, w.far.OnLoop(), func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Received:
				if kept = append(kept, m.Retain()); !answered {
					answered = true
					for range answers {
						ctx.Respond(NewSend([]byte{good}))
					}
				}
			}
		})
		_, at := listen(answerer, w.far, there+":7472")
		asker := newProbe(w, w.sys, w.rt.OnLoop(), nil)
		id := w.rt.CreateID(asker.pid, IDConfig{})
		asker.send(id, &Dial{Addr: at})
		next[*Established](asker)
		for range requests {
			asker.send(id, NewSend(make([]byte, size)))
		}
		for range answers {
			next[*Received](asker)
		}
		releaseAll(w, &kept, requests)
		g.h.release()
		g.await("everything", func() bool { return g.h.all == hoards })
		g.finish()
	}, Config{Limits: Limits{ReceiveMemory: 8 << 20}})
}

// releaseAll releases an owner's retained messages, until n messages have arrived: the rest wait
// for their share again.
func releaseAll(w *world, kept *[]*Received, n int) {
	w.Helper()
	for come := 0; come < n; {
		settle()
		batch := *kept
		if *kept = nil; len(batch) == 0 {
			w.Fatalf("%d of %d requests have come", come, n)
		}
		come += len(batch)
		for _, m := range batch {
			m.Release()
		}
	}
}
