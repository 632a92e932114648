package actor

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A connection may be broken off while its identifier's mailbox holds the tick that lets Dial try
// another address. The end then concerns a connection that Dial has given up, and not the attempt
// under way.
func TestBrokenOffAfterDialHasGoneOn(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		stuck, server, client := w.farProbe(), w.farProbe(), w.probe()
		listen(stuck, w.far, there+":7001", secured(w))
		w.listen(server, secured(w))
		w.rt.resolve = addresses(there+":7001", there+":7471")
		cfg := secured(w)
		if t := cfg.Security.TLS; t != nil {
			t.ServerName = "alice"
		}
		c := w.rt.CreateID(client.pid, cfg)
		client.send(c, &Dial{Addr: "there:7471"})
		next[*ConnectRequest](stuck) // and it does not answer
		settle()
		w.onLoop(w.rt, func(l *loop) {
			it, late := w.ident(l, c), l.el.Now().Add(-time.Second)
			for _, p := range it.pendingCommands() {
				if p.Inner { // the Connect
					p.Due = late
				}
			}
			it.box.PostUserMessage(&tick{})
			it.BreakOff(unix.ECONNABORTED)
		})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
		client.quiet()
	})
}
