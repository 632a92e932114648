package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// An owner retains requests until its answer has left, which is a large one: the peer reads it. The
// connection is still read, because the peer's Read comes behind further requests.
func TestReadOfAnswerBehindMessages(t *testing.T) {
	const size, requests, answer = 64 << 10, 12, 200 << 10
	onFlavors(t, func(w *world) {
		const hoards = 40
		g := greed{tb: w, server: w.far, client: w.rt, where: w.far.OffLoop(), listen: there + ":7471", peers: 1, each: hoards, size: size}
		g.begin() // has half of what is shared
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
	}, Config{Limits: Limits{ReceiveMemory: 8 << 20}})
}
