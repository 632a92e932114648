package rdmanet

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// owner is the actor that owns a connection's identifier and gets its events, on its loop. A
// connection has no goroutine.
type owner struct {
	conn     *Conn     // on the accepting side nil until the request
	from     *Listener // nil on the dialling side
	accepted bool      // from got the Conn
	local    rdma.Local
}

// Receive implements actor.Actor.
func (o *owner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Received:
		woke, err := o.conn.rd.storeMessage(m)
		switch {
		case err == nil:
			o.yieldToWoken(woke)
		case errors.Is(err, errUnwanted):
			o.conn.handleUnwanted()
		default:
			o.conn.failStream(err)
		}
	case *actor.Started:
		o.local = rdma.LocalOf(ctx)
	case *rdma.Sent:
		o.yieldToWoken(o.conn.wr.handleSent())
	case *rdma.SendFailed:
		o.sendFailed(m)
	case *rdma.ConnectRequest:
		o.handleRequest(ctx, m)
	case *rdma.CommandFailed:
		// an Accept that failed for lack of memory: nothing else answers the peer
		if o.from != nil && o.conn != nil && !o.accepted {
			o.conn.failStream(resetError(m))
		}
	case *rdma.Established:
		if o.from != nil {
			o.conn.setEstablished(m)
			o.accepted = true
			o.yieldToWoken(o.from.queueAccepted(o.conn))
		}
	case *rdma.Disconnected:
		o.failHalves(m.Err)
	case *rdma.DeviceRemoval:
		o.failHalves(&rdma.RemovedError{Device: m.Device, Err: m.Err})
	case *rdma.Closed:
		o.handleClosed(ctx, m)
	}
}

// yieldToWoken lets a goroutine that was woken run soon: its writes are then sent in this turn or
// the next, and it does not have to wake the loop.
func (o *owner) yieldToWoken(woke bool) {
	if woke {
		o.local.Woke()
	}
}

// handleRequest accepts a peer that speaks this protocol. It rejects any other, and one for which
// there is no room.
func (o *owner) handleRequest(ctx actor.Context, m *rdma.ConnectRequest) {
	wrong := checkGreeting(m.PrivateData)
	if wrong == "" {
		wrong = o.from.admitPeer(m.Peer.Source())
	}
	if wrong != "" {
		ctx.Respond(&rdma.Reject{PrivateData: []byte(wrong)})
		return
	}
	o.conn = newConn(o.from.rt, ctx.Sender(), &o.from.cfg)
	o.conn.from = m.Peer.Source()
	ctx.Respond(&rdma.Accept{PrivateData: greetingData()})
}

// sendFailed ends a stream that lacks a message. If Sends fail because the connection ends, it does
// nothing, as the event of the end follows.
func (o *owner) sendFailed(m *rdma.SendFailed) {
	if errors.Is(m, rdma.ErrFlushed) || errors.Is(m, unix.ENOTCONN) {
		return
	}
	o.conn.failStream(resetError(m))
}

// errNoFIN is the cause of a reset if the connection has ended without an error.
var errNoFIN = errors.New("the peer has ended the connection without a FIN")

// failHalves sets the error of both halves to the connection's end. The end of a secured connection
// is reported after a rejection, too; then there are no halves.
func (o *owner) failHalves(cause error) {
	c := o.conn
	if c == nil {
		return
	}
	c.rd.mu.Lock()
	finned := c.rd.finned
	c.rd.mu.Unlock()
	writing := brokenPipeError(errors.New("the peer has closed"))
	if cause == nil {
		cause = errNoFIN
	} else {
		finned = false
	}
	if !finned {
		writing = resetError(cause)
	}
	woke := c.rd.failWait(resetError(cause))
	woke = c.wr.failWait(writing) || woke
	o.yieldToWoken(woke)
}

// handleClosed handles the identifier's last event. It stops the owner of a dialling side. The
// runtime stops that of an accepting side.
func (o *owner) handleClosed(ctx actor.Context, m *rdma.Closed) {
	if o.conn != nil {
		cause := m.Err
		if cause == nil {
			cause = fmt.Errorf("the identifier was closed")
		}
		o.failHalves(cause)
	}
	if o.from == nil {
		ctx.Poison(ctx.Self())
	} else if o.conn != nil && !o.accepted {
		o.from.removeFailed(o.conn.from)
	}
}
