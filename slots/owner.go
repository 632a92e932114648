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
		if err := o.received(m); err != nil {
			o.conn.abort(err)
		}
	case *look:
		o.pump(ctx)
	case *actor.Started:
		o.local = rdma.LocalOf(ctx)
	case *rdma.ConnectRequest:
		o.requested(ctx, m)
	case *rdma.Established:
		o.established(ctx, m)
	case *rdma.MemoryAllocated:
		o.allocated(ctx, m)
	case *rdma.Granted:
		o.describe(ctx, m)
	case tooLate:
		if !o.ready {
			o.setupFailed(violation("it has not said where its slots are"))
		}
	case *rdma.CommandFailed:
		o.setupFailed(m)
	case *rdma.SendFailed:
		// if the connection ends, that event follows
		if !errors.Is(m, rdma.ErrFlushed) && !errors.Is(m, unix.ENOTCONN) {
			o.conn.abort(m)
		}
	case *rdma.Disconnected:
		o.ended(m.Err)
	case *rdma.DeviceRemoval:
		o.ended(&rdma.RemovedError{Device: m.Device, Err: m.Err})
	case *rdma.Closed:
		o.closed(ctx, m)
	case *actor.Stopping: // Dial has given up: the identifier is destroyed without notice
		o.ended(rdma.ErrOwnerDied)
	}
}

// requested accepts a peer that speaks this protocol. It rejects any other, and one for which there
// is no room.
func (o *owner) requested(ctx actor.Context, m *rdma.ConnectRequest) {
	wrong := checkGreeting(m.PrivateData)
	if wrong == "" {
		wrong = o.from.admit(m.Peer.Source())
	}
	if wrong != "" {
		ctx.Respond(&rdma.Reject{PrivateData: []byte(wrong)})
		return
	}
	o.conn = newConn(o.from.rt, o.from.cfg)
	o.conn.owner = ctx.Self()
	o.conn.id, o.conn.peer = ctx.Sender(), m.Peer
	ctx.Respond(&rdma.Accept{PrivateData: greeting()})
}

// established allocates memory: one block that the peer writes to, one that this side writes from.
func (o *owner) established(ctx actor.Context, m *rdma.Established) {
	c := o.conn
	c.id, c.local, o.handle = ctx.Sender(), o.local, m.ID
	c.near, c.peer, c.identity = m.Local, m.Peer, m.Identity
	o.late = rdma.After(ctx, setupTime, tooLate{})
	if wrong := checkGreeting(m.PrivateData); o.from == nil && wrong != "" {
		o.setupFailed(violation("it has accepted, but does not say that it speaks %s", tag))
		return
	}
	n := c.cfg.Slots * c.cfg.Size
	ctx.Request(c.id, &rdma.AllocMemory{Bytes: n, Access: rdma.RemoteWrite})
	ctx.Request(c.id, &rdma.AllocMemory{Bytes: n})
}

// allocated pins memory, which any goroutine may use and which must stay while a program has a
// slot.
func (o *owner) allocated(ctx actor.Context, m *rdma.MemoryAllocated) {
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

// describe sends this side's ring.
func (o *owner) describe(ctx actor.Context, m *rdma.Granted) {
	c := o.conn
	s, err := (&ring{c.cfg.Slots, c.cfg.Size, m.Key}).put()
	if err != nil {
		o.setupFailed(err)
		return
	}
	ctx.Send(c.id, s)
	o.granted = true
	o.begin()
}

// begin hands out the Conn when each side has the other's ring.
func (o *owner) begin() {
	c := o.conn
	if o.ready || !o.granted || !o.described || o.out == nil {
		return
	}
	o.ready = true
	o.late()
	o.immediate = o.local.Immediates(o.handle)
	c.mu.Lock()
	c.out.set(c, o.out, c.cfg.Size)
	c.mu.Unlock()
	c.made <- nil
	o.local.Woke()
	if o.from != nil && o.from.accepted(c) {
		o.local.Woke()
	}
}

// received handles a message of the peer's, or its notice that a slot is written.
func (o *owner) received(m *rdma.Received) error {
	c := o.conn
	switch {
	case m.HasImm:
		return c.filled(written{int(m.Imm), m.Written})
	case len(m.Data) == 0:
		return violation("an empty message")
	}
	switch b := m.Data[1:]; m.Data[0] {
	case msgFilled:
		return eachFilled(b, c.filled)
	case msgReleased:
		return eachReleased(b, c.released)
	case msgEnd:
		return c.peerEnds()
	case msgRing:
		return o.peerRing(b)
	}
	return violation("a message of the kind %d", m.Data[0])
}

// peerRing records the peer's ring.
func (o *owner) peerRing(b []byte) error {
	if o.described {
		return violation("it has said twice where its slots are")
	}
	r, err := parseRing(b)
	if err != nil {
		return err
	}
	o.described = true
	c := o.conn
	c.mu.Lock()
	c.out.peer = r
	c.in.set(min(r.slots, c.cfg.Slots))
	c.mu.Unlock()
	o.begin()
	return nil
}

// pump sends the queued slots, the notices about released slots, and the end.
func (o *owner) pump(ctx actor.Context) {
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
	if err := o.write(ctx, queue); err != nil {
		c.abort(&LostError{err})
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

// write posts the slots' Writes and notifies the peer.
func (o *owner) write(ctx actor.Context, queue []*outSlot) error {
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
		o.conn.abort(err)
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

// ended records the end of the connection. Slots that arrived before can still be received.
func (o *owner) ended(cause error) {
	if c := o.conn; c != nil {
		c.ended(cause)
		o.notMade(c.err)
	}
}

// closed handles the identifier's last event. It stops the owner of a dialling side. The runtime
// stops that of an accepting side.
func (o *owner) closed(ctx actor.Context, m *rdma.Closed) {
	o.ended(m.Err)
	if o.late != nil {
		o.late()
	}
	if o.from == nil {
		ctx.Poison(ctx.Self())
	} else if o.conn != nil && !o.ready {
		o.from.gone(o.conn.peer.Source())
	}
}
