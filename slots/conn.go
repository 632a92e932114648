package slots

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Conn is a connection with a ring of slots in each direction. Any goroutine may call its methods;
// those that wait, Reserve and Receive, are not for a loop's.
type Conn struct {
	rt         *rdma.Runtime
	cfg        Config
	id, owner  *actor.PID
	local      rdma.Local // the owner's
	near, peer rdma.Addr  // set before anybody has the Conn, as is identity
	identity   string
	made       chan error // one: nil when it is ready, or why it was not made

	mu      sync.Mutex // guards all the rest, and is never locked for long
	out     sending
	in      receiving
	users   int      // slots that programs have
	pins    []func() // of the memory; they are released when it is over and nobody has a slot
	pumping bool     // the owner will look at what is to be sent
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

// Size is how many bytes of a slot that Reserve returns fit into the peer's. Any goroutine.
func (c *Conn) Size() int { return c.out.size }

// Slots is how many slots each direction has. Any goroutine.
func (c *Conn) Slots() int { return len(c.out.slots) }

// LocalAddr is this end's address. Any goroutine.
func (c *Conn) LocalAddr() rdma.Addr { return c.near }

// RemoteAddr is the peer's address. Any goroutine.
func (c *Conn) RemoteAddr() rdma.Addr { return c.peer }

// Identity is who the peer is, as Established has it: "" if the connection is not secured.
func (c *Conn) Identity() string { return c.identity }

// End says that nothing more will be sent: behind everything that was, the peer's Receive returns
// io.EOF. Receiving goes on. A Reserved that was not sent cannot be sent any more. It does not
// wait. The error is why nothing can be sent. Any goroutine.
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
	c.out.wake()
	c.pumpLocked()
}

// Close ends the connection. What was sent before still goes to the peer, and the end behind it,
// for as long as Config.Linger. What the peer has sent and nobody has received is dropped. Calls
// that wait return ErrClosed. Slots that programs have stay theirs until Send or Release. Close
// does not wait; Runtime.Shutdown waits for the connection, and for those slots. Any goroutine.
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
	c.in.wake()
	c.endLocked()
	return nil
}

// look has the owner look at what is to be sent.
type look struct{}

var lookNow = &look{}

// pumpLocked has what is to be sent go out, on the loop.
func (c *Conn) pumpLocked() {
	if !c.pumping && c.err == nil {
		c.pumping = true
		c.rt.System().Root.Send(c.owner, lookNow)
	}
}

// fail notes why nothing comes, or goes, any more. first: nobody has noted a reason before. Loop
// goroutine.
func (c *Conn) fail(err error) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first = c.err == nil; first {
		c.err = err
	}
	woke := c.out.wake()
	if c.in.wake() || woke {
		c.local.Woke()
	}
	return first
}

// abort ends the connection at once. Loop goroutine.
func (c *Conn) abort(err error) {
	if c.fail(err) {
		c.rt.System().Root.Send(c.id, &rdma.DestroyID{})
	}
}

// ended notes that the connection has ended. Its memory goes when nobody has a slot any more. Loop
// goroutine.
func (c *Conn) ended(err error) {
	c.fail(&LostError{err})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.unpinLocked()
}

// usedLocked notes that a program has given a slot back.
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
