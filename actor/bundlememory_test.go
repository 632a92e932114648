package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// bundleOf returns a bundle.
func bundleOf(messages ...string) []byte {
	b := make([]byte, wire.HeaderLen)
	wire.Header{Type: wire.TypeBundle}.Put(b)
	for _, m := range messages {
		b = wire.AppendBundled(b, []byte(m))
	}
	return b
}

// held returns the bytes of received messages that count on rt's loop, where its device asks for
// receives.
func (w *world) held(rt *Runtime) (n int) {
	w.Helper()
	w.onLoop(rt, func(l *loop) { n = l.Shares.Held })
	return n
}

// Messages of one bundle belong to the owner like others: a retained one does not change, the
// memory of all counts once, and each returns its credit.
func TestBundledMessagesAreRetained(t *testing.T) {
	onAllKinds(t, func(w *world) {
		server := w.farProbe()
		w.listen(server, IDConfig{MaxMessage: 1 << 10, Credits: 4})
		mallory, id, s, _ := w.peerOf(server, 5)
		var kept []*Received
		server.reactWith(keeping(&kept))
		mallory.send(id, NewSend(bundleOf("first", "", "third", "fourth")))
		for range 4 {
			next[*Received](server)
		}
		settle()
		if n := w.held(w.far); n > 2<<10 {
			w.Errorf("a bundle of 4 messages counts %d bytes", n)
		}
		for i, m := range kept {
			clone := m.Clone()
			if want := []string{"first", "", "third", "fourth"}[i]; string(m.Data) != want || string(clone.Data) != want {
				w.Errorf("message %d is %q, its clone %q", i, m.Data, clone.Data)
			}
			if cap(m.Data) != len(m.Data) {
				w.Errorf("to append to message %d would overwrite the next one", i)
			}
		}
		for i := range 4 { // in another order than they came
			w.onLoop(w.far, func(l *loop) {
				if c := w.conn(l, s).Counts(); c.Unfreed != 4-i || c.Receive != i {
					w.Errorf("with %d released the counts are %+v", i, c)
				}
			})
			if string(kept[0].Data) != "first" {
				w.Errorf("the first message has become %q", kept[0].Data)
			}
			kept[3-i].Release()
			settle()
			for n := 4; i == 0 && n < 50; n++ { // later messages get other memory
				mallory.send(id, NewSend(bundleOf("not the")))
				next[*Received](server)
				settle()
				kept[n].Release()
				settle()
			}
		}
		w.onLoop(w.far, func(l *loop) {
			if c := w.conn(l, s).Counts(); c.Unfreed != 0 || c.Receive != 4 {
				w.Errorf("with all released the counts are %+v", c)
			}
		})
		if n := w.held(w.far); n != 0 {
			w.Errorf("%d bytes count when all is released", n)
		}
		kept = nil
		mallory.send(id, NewSend(bundleOf("four", "more", "have", "room")))
		for range 4 {
			next[*Received](server)
		}
		mallory.send(id, &Disconnect{}) // while they are retained
		until[*Closed](server)
		until[*Closed](mallory)
		for _, m := range kept {
			m.Release()
		}
		settle()
		if n := w.held(w.far); n != 0 {
			w.Errorf("%d bytes count when nothing is left of the connection", n)
		}
	})
}

// When memory is short, an owner that retains one small message of a bundle does not hold the
// bundle's memory, just as it does not hold the receive of a small message that arrived alone.
func TestBundledMessagesAreCopiedOut(t *testing.T) {
	onFlavors(t, func(w *world) {
		server := w.farProbe()
		cfg := IDConfig{MaxMessage: 64 << 10, Credits: 64}
		w.listen(server, cfg)
		hog, id, _, _ := w.peerOf(server, 5)
		mallory, id2, _, _ := w.peerOf(server, 5)
		var kept []*Received
		server.reactWith(keeping(&kept))
		big := append([]byte{byte(wire.TypeData), 0, 0, 0, 0, 0, 0, 0}, pattern(40<<10, 1)...)
		short := func() (short bool) {
			w.onLoop(w.far, func(l *loop) { short = l.Shares.Held > l.RecvBudget.Most()/4 })
			return short
		}
		for range 40 {
			if short() {
				break
			}
			hog.send(id, NewSend(big))
			settle()
		}
		if !short() {
			w.Fatal("memory is not short")
		}
		before := w.held(w.far)
		retained := (*Received)(nil)
		server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok && string(m.Data) == "keep this" {
				retained = m.Retain()
			}
		})
		mallory.send(id2, NewSend(bundleOf(string(pattern(20<<10, 2)), "keep this", string(pattern(30<<10, 3)))))
		settle()
		if n := w.held(w.far) - before; retained == nil || n > 1<<10 {
			w.Errorf("one small message of a bundle counts %d bytes", n)
		}
		if string(retained.Data) != "keep this" {
			w.Errorf("it has become %q", retained.Data)
		}
		retained.Release()
		for _, m := range kept {
			m.Release()
		}
		settle()
		if n := w.held(w.far); n != 0 {
			w.Errorf("%d bytes count when all is released", n)
		}
	}, Config{Limits: Limits{ReceiveMemory: 2 << 20}})
}

// While others have all the memory that is sent from, messages leave as they would without bundles.
func TestBundlesWithoutMemory(t *testing.T) {
	onAllKinds(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 64})
		q := w.tapped(w.rt, p.c)
		taken := 0
		w.onLoop(w.rt, func(l *loop) {
			taken = l.SendBudget.Free
			l.SendBudget.TakeLarge(taken)
		})
		var messages [][]byte
		for i := range 10 {
			messages = append(messages, pattern(400, i), []byte("small"))
		}
		w.submitted(w.rt, p.c, messages...)
		for i, m := range messages {
			if g := p.server.any(); g.data != string(m) {
				w.Fatalf("message %d is %v", i, g)
			}
		}
		if n := len(q.types()); n < 10 || n > 20 {
			w.Errorf("20 messages have left in %d Sends", n)
		}
		w.onLoop(w.rt, func(l *loop) { l.SendBudget.GiveLarge(taken) })
		w.closes(p)
	})
}
