package cmidtest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// ended reports that there will be no connection.
func (id *ident) ended(kind states.Kind, status int32) {
	id.timer.stop()
	id.state = states.Failed
	if !id.ps.Datagram() {
		id.qp.fail()
	}
	id.report(kind, status)
}

// unanswered ends an identifier whose message has got no answer.
func (id *ident) unanswered() { id.ended(states.KindUnreachable, -int32(unix.ETIMEDOUT)) }

// becomeEstablished is the passive side's end of the handshake.
func (id *ident) becomeEstablished() {
	if id.state == states.Accepting {
		id.timer.stop()
		id.become(states.Connected, states.KindEstablished, 0)
	}
}

// endStream ends an iWARP connection on this side.
func (id *ident) endStream(status int32, err error) {
	id.qp.fail()
	id.state = states.Timewait
	id.in.event(id, cmid.DriverEvent{Kind: states.KindDisconnected, Status: status, Err: err})
}

// terminate ends an iWARP connection with an error, at both ends.
func (q *qp) terminate(why string) {
	err := fmt.Errorf("%s: terminated: %w", why, unix.ECONNRESET)
	status := connReset
	q.id.send(MsgDREQ, &message{status: status, err: err})
	q.id.endStream(status, err)
}

// die brings the queue pair into its error state; on iWARP its connection ends with it.
func (q *qp) die(why string) {
	if q.in.f.iwarp {
		q.terminate(why)
		return
	}
	q.fail()
}

// How long TCP repeats what is not acknowledged before it gives up the connection. The embedded
// device sets TCP_USER_TIMEOUT. Linux tries 15 times.
const (
	embeddedGiveUp = 30 * time.Second
	kernelGiveUp   = 924600 * time.Millisecond
)

// stalled notes whether a stream has bytes that are not acknowledged.
func (in *instance) stalled(who endpoint, yes bool) {
	id := in.ids[who.h]
	switch {
	case id == nil:
	case !yes:
		id.unstall()
	case !id.stalling:
		id.stalling = true
		limit := kernelGiveUp
		if in.f.embedded {
			limit = embeddedGiveUp
		}
		id.stall.start(in.loop, limit, id.giveUp)
	}
}

// giveUp ends a connection on which TCP has got no acknowledgement for too long.
func (id *ident) giveUp() {
	id.in.f.unsend(id.self())
	if id.state == states.Connected {
		id.endStream(-int32(unix.ETIMEDOUT), fmt.Errorf("nothing was acknowledged for too long: %w", unix.ETIMEDOUT))
	}
}
