package actor

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// Another actor that knows the PID cannot answer a request before the peer is authenticated: the
// device would accept or reject without the handshake. Its commands change nothing.
func TestSecuredRequestHasNoAnswerBeforeItsOwner(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		all := &w.far.computing
		for range all.Most { // holds the handshake up
			all.Enter(netip.Addr{}, func() {})
		}
		server, client, stranger := w.farProbe(), w.probe(), w.farProbe()
		listener := w.listen(server, secured(w))
		client.send(w.rt.CreateID(client.pid, secured(w)), &Dial{Addr: there + ":7471"})
		settle()
		for _, i := range w.far.Inspect() {
			if i.PID.Equal(listener) {
				continue
			}
			stranger.send(i.PID, &Accept{})
			stranger.send(i.PID, &Reject{})
		}
		settle()
		for range all.Most {
			all.Leave(netip.Addr{})
		}
		for range 2 {
			f, _ := next[*CommandFailed](stranger)
			is(w, f, unix.EINVAL)
		}
		_, id := next[*ConnectRequest](server)
		server.send(id, &Accept{})
		next[*Established](server)
		next[*Established](client)
		stranger.quiet()
	})
}
