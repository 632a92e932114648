package actor

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
)

// A connection ends with a message half read while this side stands still, which was no fault of
// the peer's address: its messages do not wait for as long as this has taken.
func TestStandingStillWastesNothing(t *testing.T) {
	const all = 2 << 20
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: all / 2, Credits: 4, eager: kib})
		var c *datapath.Conn
		w.onLoop(w.far, func(l *loop) {
			c = w.conn(l, p.s)
			c.QP = &deaf{QP: c.QP}
		})
		p.client.send(p.c, NewSendBuffer(all/4))
		settle()
		w.whileBlocked(w.far, func() { time.Sleep(time.Hour) })
		until[*Closed](p.server)
		until[*Closed](p.client)
		// the real queue pair would have done this
		w.onLoop(w.far, func(l *loop) { c.In.Arrivals.Ended(c, nil, datapath.Flushed()) })

		again := w.connectTo(p.server, IDConfig{MaxMessage: all / 2, Credits: 4, eager: kib})
		again.client.send(again.c, NewSendBuffer(all/4))
		time.Sleep(3 * time.Minute) // some suspicion is left
		until[*Received](p.server)
	}, Config{Limits: Limits{ReceiveMemory: all}, Keepalive: Keepalive{Idle: -1}})
}
