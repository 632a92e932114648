package slots

import (
	"context"
	"io"

	fifo "github.com/rdmactor/rdmactor/internal/ring"
)

// receiving is the half of a Conn whose slots the peer fills.
type receiving struct {
	gate
	memory    []byte // of all slots
	slots     []inSlot
	arrived   fifo.Ring[written]
	free      int      // slots that the peer may fill
	returning []uint16 // released, and the peer does not know
	batch     int      // of those, if the peer has as many that it may fill
	ended     bool     // the peer has said that nothing more comes
}

// inState is what happens with a slot.
type inState uint8

const (
	inFree      inState = iota // the peer may fill it
	inArrived                  // it is filled, and waits for Receive
	inUse                      // a program has it
	inReturning                // it is released, and the peer does not know
)

// inSlot is a slot that the peer writes.
type inSlot struct {
	state inState
	use   uint32 // how often it was received
}

// set makes the slots, when both sides have said what they have.
func (r *receiving) set(slots int) {
	r.slots, r.free = make([]inSlot, slots), slots
	r.returning, r.batch = make([]uint16, 0, slots), max(1, slots/4)
}

// Received is a slot that the peer has filled. It belongs to who has got it from Receive, until
// Release.
type Received struct {
	c     *Conn
	slot  int
	use   uint32
	bytes []byte
}

// Receive waits for the next slot that the peer has filled, in the order in which it sent them. The
// error is why there will be none: io.EOF behind everything if the peer has called End or Close,
// what Conn says of its end, ErrClosed, or that ctx has ended. Any goroutine but a loop's.
func (c *Conn) Receive(ctx context.Context) (Received, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.in
	for {
		if r.arrived.Len() > 0 {
			w := r.arrived.Pop()
			if r.arrived.Len() > 0 {
				r.wake()
			}
			s := &r.slots[w.slot]
			s.state = inUse
			s.use++
			c.users++
			return Received{c, w.slot, s.use, r.memory[w.slot*c.cfg.Size:][:w.n:w.n]}, nil
		}
		if err := c.receivableLocked(); err != nil {
			r.wake()
			return Received{}, err
		}
		if err := r.wait(ctx, c.rt, &c.mu); err != nil {
			if r.arrived.Len() > 0 {
				r.wake() // the token may have been for who gives up
			}
			return Received{}, err
		}
	}
}

// receivableLocked says why nothing more will come; nil: something may.
func (c *Conn) receivableLocked() error {
	switch {
	case c.closed:
		return ErrClosed
	case c.in.ended:
		return io.EOF
	}
	return c.err
}

// Bytes is what the peer has written. They stay where they are until Release, also when the
// connection ends. A peer that breaks the rules may change them meanwhile: copy once what is looked
// at more than once. Any goroutine that owns r.
func (r Received) Bytes() []byte { return r.bytes }

// Release gives the slot back, and the peer may fill it again. It panics if the slot was released
// before. Any goroutine that owns r.
func (r Received) Release() {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.in.slots[r.slot]
	if s.state != inUse || s.use != r.use {
		panic("slots: a Received was released twice")
	}
	c.returnLocked(r.slot)
	c.usedLocked()
	c.returnDueLocked()
}

func (c *Conn) returnLocked(slot int) {
	c.in.slots[slot].state = inReturning
	c.in.returning = append(c.in.returning, uint16(slot))
}

// returnDueLocked has the peer notified of slots that it may fill again, if that is worth a message
// or the peer may need them.
func (c *Conn) returnDueLocked() {
	r := &c.in
	if n := len(r.returning); n > 0 && (n >= r.batch || r.free < r.batch) && c.err == nil {
		c.pumpLocked()
	}
}

// takeLocked is the slots that the peer is about to be notified of. It is valid until the lock is
// unlocked.
func (r *receiving) takeLocked() []uint16 {
	all := r.returning
	for _, slot := range all {
		r.slots[slot].state = inFree
	}
	r.free += len(all)
	r.returning = all[:0]
	return all
}

// filled takes note that the peer has filled a slot. Loop goroutine.
func (c *Conn) filled(w written) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.in
	switch {
	case r.ended:
		return violation("it has filled slot %d behind its end", w.slot)
	case w.slot >= len(r.slots):
		return violation("it has filled slot %d of %d", w.slot, len(r.slots))
	case w.n > c.cfg.Size:
		return violation("it has filled slot %d with %d bytes, of %d", w.slot, w.n, c.cfg.Size)
	case r.slots[w.slot].state != inFree:
		return violation("it has filled slot %d, which was not released", w.slot)
	}
	r.free--
	if c.closed {
		c.returnLocked(w.slot)
		return nil
	}
	r.slots[w.slot].state = inArrived
	r.arrived.Push(w)
	if r.wake() {
		c.local.Woke()
	}
	c.returnDueLocked()
	return nil
}

// peerEnds takes note that nothing more comes. Loop goroutine.
func (c *Conn) peerEnds() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in.ended {
		return violation("it has ended twice")
	}
	if c.in.ended = true; c.in.wake() {
		c.local.Woke()
	}
	return nil
}
