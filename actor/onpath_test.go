package actor

import (
	"bytes"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
)

// What programs say, and who they are, cannot be read on the path of connections that are secured.
// Without security it can: so the test would see it.
func TestNothingIsReadOnThePath(t *testing.T) {
	onFlavors(t, func(w *world) {
		found := w.overheard(IDConfig{})
		for _, said := range words {
			if !found[said] {
				w.Errorf("%q of a connection that is not secured is not found", said)
			}
		}
	})
	onSecured(t, func(w *world, secured mode) {
		for said := range w.overheard(secured(w), "alice", "authority") {
			w.Errorf("%q can be read", said)
		}
	})
}

// words are what is said in overheard.
var words = []string{"the request's data", "the accept's data", "the reason", "a message", "a large message"}

// overheard returns which of words, and of more, somebody on the path has read: of a connection,
// and of one that was rejected.
func (w *world) overheard(cfg IDConfig, more ...string) map[string]bool {
	w.Helper()
	var seen bytes.Buffer
	w.f.Intercept(func(_ cmidtest.Message, b []byte) []byte {
		seen.Write(b)
		return b
	})
	defer w.f.Intercept(nil)
	server, client := w.farProbe(), w.probe()
	w.listen(server, large(cfg))
	dial := func() (c, s *actor.PID) {
		c = w.rt.CreateID(client.pid, large(cfg))
		client.send(c, &Dial{Addr: there + ":7471", PrivateData: []byte(words[0])})
		_, s = next[*ConnectRequest](server)
		return c, s
	}
	_, s := dial()
	server.send(s, &Reject{PrivateData: []byte(words[2])})
	until[*Closed](client)
	until[*Closed](server)
	c, s := dial()
	server.send(s, &Accept{PrivateData: []byte(words[1])})
	next[*Established](server)
	next[*Established](client)
	client.send(c, NewSend([]byte(words[3])))
	server.any()
	client.send(c, NewSend(bytes.Repeat([]byte(words[4]), 3<<20/len(words[4]))))
	server.any()
	found := make(map[string]bool)
	for _, text := range append(more, words...) {
		if bytes.Contains(seen.Bytes(), []byte(text)) {
			found[text] = true
		}
	}
	return found
}
