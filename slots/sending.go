package slots

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// sending is the half of a Conn that fills slots. This side's slots and the peer's have the same
// numbers: a slot is free when the peer has released its own and the device is finished with this
// side's.
type sending struct {
	gate
	memory []byte // of all slots
	peer   ring
	size   int // bytes that fit into a slot
	slots  []outSlot
	free   []*outSlot // last released, first used: its memory is in the processor's cache
	queue  []*outSlot // sent, not yet posted
	spare  []*outSlot // previous backing array of queue
	ended  bool       // End was called
}

// outState is the state of a slot that this side fills.
type outState uint8

const (
	outFree     outState = iota
	outReserved          // a program fills it
	outQueued            // waits to be posted
	outPosted            // the device writes it, the peer has it, or both
)

// outSlot is a slot that this side writes.
type outSlot struct {
	c       *Conn
	index   int
	bytes   []byte
	state   outState
	use     uint32 // how often it was reserved, to detect stale Reserveds
	n       int    // bytes
	writing bool   // the device has it
	theirs  bool   // the peer has it
	write   rdma.Write
	done    func(error)
}

// makeSlots makes the slots when both sides' numbers are known.
func (s *sending) makeSlots(c *Conn, m *rdma.Memory, own int) {
	n := min(c.cfg.Slots, s.peer.slots)
	s.size = min(own, s.peer.size)
	s.slots, s.free = make([]outSlot, n), make([]*outSlot, 0, n)
	s.queue, s.spare = make([]*outSlot, 0, n), make([]*outSlot, 0, n)
	for i := range s.slots {
		o := &s.slots[i]
		o.c, o.index = c, i
		o.bytes = s.memory[i*own:][:s.size:s.size]
		o.write = rdma.Write{Memory: m, At: i * own, Key: s.peer.key, Offset: i * s.peer.size, Imm: uint32(i)}
		o.done = o.writeDone
	}
	for i := n - 1; i >= 0; i-- {
		s.free = append(s.free, &s.slots[i])
	}
}

// Reserved is a slot to be filled. It belongs to the caller of Reserve until Send or Release. The
// methods of the zero Reserved panic.
type Reserved struct {
	s   *outSlot
	use uint32
}

// mustSlot returns the slot. It panics if there is none.
func (r Reserved) mustSlot() *outSlot {
	if r.s == nil {
		panic("slots: a zero Reserved was used: Reserve makes them")
	}
	return r.s
}

// Reserve waits for a free slot and returns it. The error is why there will be none: the cause of
// the connection's end, ErrClosed, ErrEnded, or that ctx has ended. Any goroutine except a loop's.
func (c *Conn) Reserve(ctx context.Context) (Reserved, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.out
	for {
		if err := c.sendableLocked(); err != nil {
			s.wakeOne()
			return Reserved{}, err
		}
		if n := len(s.free); n > 0 {
			o := s.free[n-1]
			s.free = s.free[:n-1]
			if n > 1 {
				s.wakeOne()
			}
			o.state = outReserved
			o.use++
			c.users++
			return Reserved{o, o.use}, nil
		}
		if err := s.wait(ctx, c.rt, &c.mu); err != nil {
			if len(s.free) > 0 {
				s.wakeOne() // the token may have been for this caller, which gives up
			}
			return Reserved{}, err
		}
	}
}

// sendableLocked returns why nothing more may be sent; nil: it may.
func (c *Conn) sendableLocked() error {
	switch {
	case c.closed:
		return ErrClosed
	case c.err != nil:
		return c.err
	case c.out.ended:
		return ErrEnded
	}
	return nil
}

// Bytes returns the slot's memory, Conn.Size bytes, with its previous contents. They stay valid
// until Send or Release, even if the connection ends. Any goroutine that owns r.
func (r Reserved) Bytes() []byte { return r.mustSlot().bytes }

// Send writes the first n bytes into the peer's slot and notifies the peer. It does not wait: from
// now on the connection owns r. An error means that the slot was not sent: EINVAL if the slot does
// not have n bytes, and then r is still the caller's; otherwise one of Reserve's errors, and the
// slot was released. nil does not mean that the bytes have arrived: only an answer from the peer
// shows that. Send panics if the slot was sent or released before. Any goroutine that owns r.
func (r Reserved) Send(n int) error {
	c := r.mustSlot().c
	c.mu.Lock()
	defer c.mu.Unlock()
	r.checkLocked()
	if n < 0 || n > len(r.s.bytes) {
		return fmt.Errorf("slots: %d bytes in a slot of %d: %w", n, len(r.s.bytes), unix.EINVAL)
	}
	if err := c.sendableLocked(); err != nil {
		r.s.giveBackLocked()
		return err
	}
	r.s.n, r.s.state = n, outQueued
	c.out.queue = append(c.out.queue, r.s)
	c.usedLocked()
	c.pumpLocked()
	return nil
}

// Release frees a slot without sending it. It panics if the slot was sent or released before. Any
// goroutine that owns r.
func (r Reserved) Release() {
	c := r.mustSlot().c
	c.mu.Lock()
	defer c.mu.Unlock()
	r.checkLocked()
	r.s.giveBackLocked()
}

func (r Reserved) checkLocked() {
	if r.s.state != outReserved || r.s.use != r.use {
		panic("slots: a Reserved was used that had been sent or released")
	}
}

func (o *outSlot) giveBackLocked() {
	o.freeLocked()
	o.c.usedLocked()
}

// freeLocked frees the slot. It reports whether a caller waited for one.
func (o *outSlot) freeLocked() (woke bool) {
	o.state = outFree
	o.c.out.free = append(o.c.out.free, o)
	return o.c.out.wakeOne()
}

// writeDone handles the end of the device's use of the slot's memory, on the loop. An error means
// that the connection ends; its event follows.
func (o *outSlot) writeDone(err error) {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	o.writing = false
	if err == nil && !o.theirs && o.freeLocked() {
		o.c.local.Woke()
	}
}

// takeLocked returns the queued slots, which count as the peer's from now on. The slice is valid
// until the next call.
func (s *sending) takeLocked() []*outSlot {
	queue := s.queue
	s.queue, s.spare = s.spare[:0], queue
	for _, o := range queue {
		o.state, o.writing, o.theirs = outPosted, true, true
	}
	return queue
}

// slotReleased records that the peer has released a slot. Loop goroutine.
func (c *Conn) slotReleased(slot int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot >= len(c.out.slots) {
		return violationError("it has released slot %d of %d", slot, len(c.out.slots))
	}
	o := &c.out.slots[slot]
	if o.state != outPosted || !o.theirs {
		return violationError("it has released slot %d, which it does not have", slot)
	}
	if o.theirs = false; !o.writing && o.freeLocked() {
		c.local.Woke()
	}
	return nil
}
