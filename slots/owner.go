package slots

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// setupTime is the time limit for the peer's ring.
const setupTime = 10 * time.Second

// owner is the actor that owns a connection's identifier and gets its events, on its loop. A
// connection has no goroutine.
type owner struct {
	conn   *Conn     // on the accepting side nil until the request
	from   *Listener // nil on the dialling side
	local  rdma.Local
	handle rdma.Handle

	out       *rdma.Memory
	granted   bool // the peer was sent this side's ring
	described bool // the peer has sent its ring
	ready     bool
	immediate bool // Writes notify the peer
	late      func()
	filled    []written
}

// tooLate is the message that an owner sends itself when setupTime is over.
type tooLate struct{}

// Receive implements actor.Actor.
func (o *owner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Received:
		if err := o.handleReceived(m); err != nil {
			o.conn.failAndDestroy(err)
		}
	case *look:
		o.sendQueued(ctx)
	case *actor.Started:
		o.local = rdma.LocalOf(ctx)
	case *rdma.ConnectRequest:
		o.handleRequest(ctx, m)
	case *rdma.Established:
		o.handleEstablished(ctx, m)
	case *rdma.MemoryAllocated:
		o.handleAllocated(ctx, m)
	case *rdma.Granted:
		o.sendRing(ctx, m)
	case tooLate:
		if !o.ready {
			o.setupFailed(violationError("it has not said where its slots are"))
		}
	case *rdma.CommandFailed:
		o.setupFailed(m)
	case *rdma.SendFailed:
		// if the connection ends, that event follows
		if !errors.Is(m, rdma.ErrFlushed) && !errors.Is(m, unix.ENOTCONN) {
			o.conn.failAndDestroy(m)
		}
	case *rdma.Disconnected:
		o.recordEnd(m.Err)
	case *rdma.DeviceRemoval:
		o.recordEnd(&rdma.RemovedError{Device: m.Device, Err: m.Err})
	case *rdma.Closed:
		o.handleClosed(ctx, m)
	case *actor.Stopping: // Dial has given up: the identifier is destroyed without notice
		o.recordEnd(rdma.ErrOwnerDied)
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
	o.conn = newConn(o.from.rt, o.from.cfg)
	o.conn.owner = ctx.Self()
	o.conn.id, o.conn.peer = ctx.Sender(), m.Peer
	ctx.Respond(&rdma.Accept{PrivateData: greetingData()})
}

// handleEstablished allocates memory: one block that the peer writes to, one that this side writes
// from.
func (o *owner) handleEstablished(ctx actor.Context, m *rdma.Established) {
	c := o.conn
	c.id, c.local, o.handle = ctx.Sender(), o.local, m.ID
	c.near, c.peer, c.identity = m.Local, m.Peer, m.Identity
	o.late = rdma.After(ctx, setupTime, tooLate{})
	if wrong := checkGreeting(m.PrivateData); o.from == nil && wrong != "" {
		o.setupFailed(violationError("it has accepted, but does not say that it speaks %s", tag))
		return
	}
	n := c.cfg.Slots * c.cfg.Size
	ctx.Request(c.id, &rdma.AllocMemory{Bytes: n, Access: rdma.RemoteWrite})
	ctx.Request(c.id, &rdma.AllocMemory{Bytes: n})
}

// handleAllocated pins memory, which any goroutine may use and which must stay while a program has
// a slot.
func (o *owner) handleAllocated(ctx actor.Context, m *rdma.MemoryAllocated) {
	b, unpin, err := o.local.Pin(m.Memory)
	if err != nil { // the connection has just ended
		return
	}
	c := o.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins = append(c.pins, unpin)
	if m.Memory.Access()&rdma.RemoteWrite != 0 {
		c.in.memory = b
		ctx.Request(c.id, &rdma.Grant{Memory: m.Memory})
		return
	}
	o.out, c.out.memory = m.Memory, b
}

// sendRing sends this side's ring.
func (o *owner) sendRing(ctx actor.Context, m *rdma.Granted) {
	c := o.conn
	s, err := (&ring{c.cfg.Slots, c.cfg.Size, m.Key}).encodeMessage()
	if err != nil {
		o.setupFailed(err)
		return
	}
	ctx.Send(c.id, s)
	o.granted = true
	o.completeSetup()
}

// completeSetup hands out the Conn when each side has the other's ring.
func (o *owner) completeSetup() {
	c := o.conn
	if o.ready || !o.granted || !o.described || o.out == nil {
		return
	}
	o.ready = true
	o.late()
	o.immediate = o.local.Immediates(o.handle)
	c.mu.Lock()
	c.out.makeSlots(c, o.out, c.cfg.Size)
	c.mu.Unlock()
	c.made <- nil
	o.local.Woke()
	if o.from != nil && o.from.queueAccepted(c) {
		o.local.Woke()
	}
}

// handleReceived handles a message of the peer's, or its notice that a slot is written.
func (o *owner) handleReceived(m *rdma.Received) error {
	c := o.conn
	switch {
	case m.HasImm:
		return c.slotFilled(written{int(m.Imm), m.Written})
	case len(m.Data) == 0:
		return violationError("an empty message")
	}
	switch b := m.Data[1:]; m.Data[0] {
	case msgFilled:
		return eachFilled(b, c.slotFilled)
	case msgReleased:
		return eachReleased(b, c.slotReleased)
	case msgEnd:
		return c.peerEnds()
	case msgRing:
		return o.peerRing(b)
	}
	return violationError("a message of the kind %d", m.Data[0])
}

// peerRing records the peer's ring.
func (o *owner) peerRing(b []byte) error {
	if o.described {
		return violationError("it has said twice where its slots are")
	}
	r, err := parseRing(b)
	if err != nil {
		return err
	}
	o.described = true
	c := o.conn
	c.mu.Lock()
	c.out.peer = r
	c.in.makeSlots(min(r.slots, c.cfg.Slots))
	c.mu.Unlock()
	o.completeSetup()
	return nil
}

// sendQueued sends the queued slots, the notices about released slots, and the end.
func (o *owner) sendQueued(ctx actor.Context) {
	c := o.conn
	var released *rdma.Send
	c.mu.Lock()
	c.pumping = false
	if c.err != nil || !o.ready {
		c.mu.Unlock()
		return
	}
	queue := c.out.takeLocked()
	if len(c.in.returning) > 0 {
		released = putReleased(c.in.takeLocked())
	}
	end := c.out.ended && !c.endSent
	c.endSent = c.endSent || end
	closing := c.closed && !c.closing
	c.closing = c.closing || closing
	c.mu.Unlock()
	if err := o.postWrites(ctx, queue); err != nil {
		c.failAndDestroy(&LostError{err})
		return
	}
	if released != nil {
		ctx.Send(c.id, released)
	}
	if end {
		ctx.Send(c.id, rdma.NewSend([]byte{msgEnd}))
	}
	if closing {
		ctx.Send(c.id, &rdma.Close{Timeout: c.cfg.Linger})
	}
}

// postWrites posts the slots' Writes and notifies the peer.
func (o *owner) postWrites(ctx actor.Context, queue []*outSlot) error {
	o.filled = o.filled[:0]
	for _, s := range queue {
		s.write.Length, s.write.HasImm = s.n, o.immediate
		if err := o.local.Write(o.handle, &s.write, s.done); err != nil {
			return fmt.Errorf("slot %d: %w", s.index, err)
		}
		o.filled = append(o.filled, written{s.index, s.n})
	}
	if len(queue) > 0 && !o.immediate {
		ctx.Send(o.conn.id, putFilled(o.filled))
	}
	return nil
}

// setupFailed ends a connection that could not be set up.
func (o *owner) setupFailed(err error) {
	if o.conn != nil { // a Reject may fail, too
		o.conn.failAndDestroy(err)
		o.notMade(err)
	}
}

// notMade reports the error to the caller that waits for the connection.
func (o *owner) notMade(err error) {
	if o.ready {
		return
	}
	select {
	case o.conn.made <- err:
		o.local.Woke()
	default:
	}
}

// recordEnd records the end of the connection. Slots that arrived before can still be received.
func (o *owner) recordEnd(cause error) {
	if c := o.conn; c != nil {
		c.recordEnd(cause)
		o.notMade(c.err)
	}
}

// handleClosed handles the identifier's last event. It stops the owner of a dialling side. The
// runtime stops that of an accepting side.
func (o *owner) handleClosed(ctx actor.Context, m *rdma.Closed) {
	o.recordEnd(m.Err)
	if o.late != nil {
		o.late()
	}
	if o.from == nil {
		ctx.Poison(ctx.Self())
	} else if o.conn != nil && !o.ready {
		o.from.removeFailed(o.conn.peer.Source())
	}
}
