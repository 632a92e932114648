package actor

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
)

// A connection that has ended before it was accepted is no evidence about keys, so it does not look
// like a handshake that was refused: the dialler may dial again.
func TestSecuredConnectionIsLostBeforeTheAccept(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		w.listen(server, secured(w))
		client.send(w.rt.CreateID(client.pid, secured(w)), &Dial{Addr: there + ":7471"})
		r, _ := next[*ConnectRequest](server)
		w.f.Disconnect(r.ID)
		f, _ := next[*ConnectError](client)
		is(w, f, unix.ECONNRESET)
		if _, dials := f.Command.(*Dial); !dials || errors.Is(f, unix.EACCES) {
			w.Errorf("%T failed: %v", f.Command, f)
		}
		next[*Closed](client)
		until[*Closed](server)
		settle()
		client.quiet()
	})
}

// A connection that this side has broken off, because a message is not the peer's, is no accident.
func TestTamperedAcceptIsNoAccident(t *testing.T) {
	onFlavors(t, func(w *world) {
		n := 0
		w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
			if m == cmidtest.MsgSend {
				if n++; n == 2 {
					b[0] ^= 1
				}
			}
			return b
		})
		server, client := w.farProbe(), w.probe()
		w.listen(server, secured(w))
		client.send(w.rt.CreateID(client.pid, secured(w)), &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		end := until[*Closed](client)
		var broken *HandshakeError
		f, ok := end[0].msg.(*CommandFailed)
		if !ok || len(end) != 2 || !errors.As(f, &broken) {
			w.Fatalf("the client gets %v", end)
		}
		is(w, f, unix.EACCES)
		until[*Closed](server)
	})
}
