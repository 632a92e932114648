package slots

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Conn is a connection with a ring of slots in each direction. Any goroutine may call its methods,
// except that Reserve and Receive, which block, must not be called on a loop's.
type Conn struct {
	rt         *rdma.Runtime
	cfg        Config
	id, owner  *actor.PID
	local      rdma.Local // the owner's
	near, peer rdma.Addr  // set before the Conn is handed out, as is identity
	identity   string
	made       chan error // receives once: nil when the connection is ready, or why it was not made

	mu      sync.Mutex // guards all fields below; never locked for long
	out     sending
	in      receiving
	users   int      // slots that programs have
	pins    []func() // of the memory; called when the connection is over and unused
	pumping bool     // the owner is about to send the queued slots
	endSent bool
	closed  bool // Close was called
	closing bool // the identifier was asked to close
	err     error
	over    bool // the connection has ended
}

// newConn makes a Conn that is about to be connected.
func newConn(rt *rdma.Runtime, cfg Config) *Conn {
	c := &Conn{rt: rt, cfg: cfg, made: make(chan error, 1)}
	c.out.gate, c.in.gate = newGate(), newGate()
	return c
}

// Size returns how many bytes of a reserved slot fit into the peer's. Any goroutine.
func (c *Conn) Size() int { return c.out.size }

// Slots returns the number of slots in each direction. Any goroutine.
func (c *Conn) Slots() int { return len(c.out.slots) }

// LocalAddr returns this end's address. Any goroutine.
func (c *Conn) LocalAddr() rdma.Addr { return c.near }

// RemoteAddr returns the peer's address. Any goroutine.
func (c *Conn) RemoteAddr() rdma.Addr { return c.peer }

// Identity returns Established.Identity, the peer's: "" if the connection is not secured.
func (c *Conn) Identity() string { return c.identity }

// End ends this direction: after all slots that were sent, the peer's Receive returns io.EOF.
// Receiving goes on. A Reserved that was not sent can no longer be sent. End does not wait. The
// error is why nothing can be sent. Any goroutine.
func (c *Conn) End() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.sendableLocked(); err != nil {
		return err
	}
	c.endLocked()
	return nil
}

func (c *Conn) endLocked() {
	c.out.ended = true
	c.out.wakeOne()
	c.pumpLocked()
}

// Close ends the connection. Slots that were sent before still go to the peer, followed by the end,
// for at most Config.Linger. Slots that arrived and were not received are dropped. Waiting calls
// return ErrClosed. Slots that programs have stay theirs until Send or Release. Close does not
// wait; Runtime.Shutdown waits for the connection and for those slots. Any goroutine.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.closed = true
	for c.in.arrived.Len() > 0 {
		c.returnLocked(c.in.arrived.Pop().slot)
	}
	c.in.wakeOne()
	c.endLocked()
	return nil
}

// look makes the owner send queued slots and notices.
type look struct{}

var lookNow = &look{}

// pumpLocked makes the owner send queued slots and notices, on the loop.
func (c *Conn) pumpLocked() {
	if !c.pumping && c.err == nil {
		c.pumping = true
		c.rt.System().Root.Send(c.owner, lookNow)
	}
}

// fail records why nothing more is sent or received. first: no reason was recorded before. Loop
// goroutine.
func (c *Conn) fail(err error) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first = c.err == nil; first {
		c.err = err
	}
	woke := c.out.wakeOne()
	if c.in.wakeOne() || woke {
		c.local.Woke()
	}
	return first
}

// failAndDestroy ends the connection immediately. Loop goroutine.
func (c *Conn) failAndDestroy(err error) {
	if c.fail(err) {
		c.rt.System().Root.Send(c.id, &rdma.DestroyID{})
	}
}

// recordEnd records that the connection has ended. Its memory is released when no program has a
// slot. Loop goroutine.
func (c *Conn) recordEnd(err error) {
	c.fail(&LostError{err})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.unpinLocked()
}

// usedLocked records that a program no longer has a slot.
func (c *Conn) usedLocked() {
	c.users--
	c.unpinLocked()
}

func (c *Conn) unpinLocked() {
	if !c.over || c.users > 0 {
		return
	}
	for _, unpin := range c.pins {
		unpin()
	}
	c.pins = nil
}
