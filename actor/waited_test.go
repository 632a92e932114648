package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A message that has waited for credits is changed by its owner's Renew when its turn has come,
// small or large; one that is sent immediately is not.
func TestRenewsWhatHasWaited(t *testing.T) {
	onAllKinds(t, func(w *world) {
		var kept *Received
		p := w.connect(IDConfig{MaxMessage: 1 << 20, Credits: 1})
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok && kept == nil {
				kept = m.Retain()
			}
		})
		turns := 0
		say := func(text string, size int, rest string) {
			s := NewSend(append([]byte(text), make([]byte, size-len(text))...))
			s.Renew = func(b []byte) []byte {
				turns++
				return b[:copy(b, rest)]
			}
			p.client.send(p.c, s)
			settle()
		}
		say("first", 5, "renewed though it went at once")
		say("second", 6, "2nd")
		say("third", 1<<20, "3rd")
		if turns != 0 {
			w.Errorf("%d messages were renewed before their turn", turns)
		}
		w.onLoop(w.far, func(*loop) { kept.Release() })
		for _, want := range []string{"first", "2nd", "3rd"} {
			if g := p.server.any(); g.data != want {
				w.Errorf("got %.100q, want %q", g.data, want)
			}
		}
		if turns != 2 {
			w.Errorf("%d turns of 2 messages that have waited", turns)
		}
	})
}

// A message that has waited for memory reports since when, and the Since of one that has not is
// zero.
func TestSaysHowLongAnOfferWaited(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const all = 16 << 20
		var kept *Received
		var since []time.Time
		p := w.connect(IDConfig{MaxMessage: all / 2, Credits: 32})
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				since = append(since, m.Since)
				if len(m.Data) == all/2 {
					kept = m.Retain()
				}
			}
		})
		p.client.send(p.c, NewSend(make([]byte, 100)))
		p.client.send(p.c, NewSend(make([]byte, all/2)))
		next[*Received](p.server)
		next[*Received](p.server)
		waits := w.connectTo(p.server, IDConfig{MaxMessage: all / 2, Credits: 32})
		next[*Established](p.server)
		waits.client.send(waits.c, NewSend(make([]byte, all/3)))
		settle()
		begin := time.Now()
		time.Sleep(5 * time.Second)
		w.onLoop(w.far, func(*loop) { kept.Release() })
		next[*Received](p.server)
		settle()
		if d := begin.Sub(since[2]); d < 0 || d > time.Second {
			w.Errorf("what was offered at %v says it has waited since %v", begin, since[2])
		}
		if !since[0].IsZero() {
			w.Errorf("a message that came at once says it has waited since %v", since[0])
		}
	}, Config{Limits: Limits{ReceiveMemory: 16 << 20}})
}
