package actor

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Both sides learn that a peer is a foreign one.
func TestForeignIsReported(t *testing.T) {
	onFlavors(t, func(w *world) {
		for _, tt := range []struct{ server, client IDConfig }{{client: IDConfig{Raw: true}}, {server: IDConfig{Raw: true}}} {
			server, client := w.farProbe(), w.probe()
			lis := w.listen(server, tt.server)
			c := w.rt.CreateID(client.pid, tt.client)
			client.send(c, &Dial{Addr: there + ":7471"})
			r, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			there, _ := next[*Established](server)
			here, _ := next[*Established](client)
			if want := !tt.server.Raw; r.Foreign != want || there.Foreign != want || here.Foreign == want {
				w.Errorf("got %v, %v and %v there, %v here", want, r.Foreign, there.Foreign, here.Foreign)
			}
			client.send(c, &DestroyID{})
			until[*Closed](client)
			until[*Closed](server)
			server.send(lis, &DestroyID{})
			until[*Closed](server)
		}
	})
}

// With RefuseForeign no actor gets the request of a foreign peer, and a dialler fails with a
// reason.
func TestRefuseForeign(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		lis := w.listen(server, IDConfig{RefuseForeign: true})
		c := w.rt.CreateID(client.pid, IDConfig{Raw: true})
		client.send(c, &Dial{Addr: there + ":7471"})
		f, _ := next[Failure](client)
		is(w, f, unix.ECONNREFUSED)
		until[*Closed](client)
		server.quiet()

		c = w.rt.CreateID(client.pid, IDConfig{RefuseForeign: true})
		client.send(c, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
		client.send(c, &Close{})
		until[*Closed](client)
		until[*Closed](server)
		server.send(lis, &DestroyID{})
		until[*Closed](server)

		w.listen(server, IDConfig{Raw: true})
		c = w.rt.CreateID(client.pid, IDConfig{RefuseForeign: true})
		client.send(c, &Dial{Addr: there + ":7471"})
		_, s = next[*ConnectRequest](server)
		server.send(s, &Accept{})
		f, _ = next[Failure](client)
		is(w, f, ErrForeignPeer)
		end := until[*Closed](client)
		is(w, end[len(end)-1].msg.(*Closed).Err, ErrForeignPeer)
		until[*Closed](server)
	})
}
