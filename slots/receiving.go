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
	returning []uint16 // slots that were released without a notice to the peer yet
	batch     int      // number of returning that is worth a message
	ended     bool     // the peer has sent its end
}

// inState is the state of a slot that the peer fills.
type inState uint8

const (
	inFree      inState = iota // the peer may fill it
	inArrived                  // filled, waits for Receive
	inUse                      // a program has it
	inReturning                // released, the peer is not notified yet
)

// inSlot is a slot that the peer writes.
type inSlot struct {
	state inState
	use   uint32 // how often it was received, to detect stale Receiveds
}

// makeSlots makes the slots when both sides' numbers are known.
func (r *receiving) makeSlots(slots int) {
	r.slots, r.free = make([]inSlot, slots), slots
	r.returning, r.batch = make([]uint16, 0, slots), max(1, slots/4)
}

// Received is a slot that the peer has filled. It belongs to the caller of Receive until Release.
type Received struct {
	c     *Conn
	slot  int
	use   uint32
	bytes []byte
}

// Receive waits for the next slot that the peer has filled, in the order in which it sent them. The
// error is why there will be none: io.EOF after everything else if the peer has called End or
// Close, the cause of the connection's end, ErrClosed, or that ctx has ended. Any goroutine except
// a loop's.
func (c *Conn) Receive(ctx context.Context) (Received, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.in
	for {
		if r.arrived.Len() > 0 {
			w := r.arrived.Pop()
			if r.arrived.Len() > 0 {
				r.wakeOne()
			}
			s := &r.slots[w.slot]
			s.state = inUse
			s.use++
			c.users++
			return Received{c, w.slot, s.use, r.memory[w.slot*c.cfg.Size:][:w.n:w.n]}, nil
		}
		if err := c.receivableLocked(); err != nil {
			r.wakeOne()
			return Received{}, err
		}
		if err := r.wait(ctx, c.rt, &c.mu); err != nil {
			if r.arrived.Len() > 0 {
				r.wakeOne() // the token may have been for this caller, which gives up
			}
			return Received{}, err
		}
	}
}

// receivableLocked returns why nothing more arrives; nil: something may.
func (c *Conn) receivableLocked() error {
	switch {
	case c.closed:
		return ErrClosed
	case c.in.ended:
		return io.EOF
	}
	return c.err
}

// Bytes returns the bytes that the peer has written. They stay valid until Release, even if the
// connection ends. A peer that violates the protocol may change them until then: copy anything that
// is read more than once. Any goroutine that owns r.
func (r Received) Bytes() []byte { return r.bytes }

// Release lets the peer fill the slot again. It panics if the slot was released before, or if r is
// zero. Any goroutine that owns r.
func (r Received) Release() {
	c := r.c
	if c == nil {
		panic("slots: a zero Received was released: Receive makes them")
	}
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

// returnDueLocked notifies the peer of released slots if that is worth a message or the peer may
// need them.
func (c *Conn) returnDueLocked() {
	r := &c.in
	if n := len(r.returning); n > 0 && (n >= r.batch || r.free < r.batch) && c.err == nil {
		c.pumpLocked()
	}
}

// takeLocked returns the slots that the peer is about to be notified of. The slice is valid until
// the lock is unlocked.
func (r *receiving) takeLocked() []uint16 {
	all := r.returning
	for _, slot := range all {
		r.slots[slot].state = inFree
	}
	r.free += len(all)
	r.returning = all[:0]
	return all
}

// slotFilled records that the peer has filled a slot. Loop goroutine.
func (c *Conn) slotFilled(w written) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.in
	switch {
	case r.ended:
		return violationError("it has filled slot %d behind its end", w.slot)
	case w.slot >= len(r.slots):
		return violationError("it has filled slot %d of %d", w.slot, len(r.slots))
	case w.n > c.cfg.Size:
		return violationError("it has filled slot %d with %d bytes, of %d", w.slot, w.n, c.cfg.Size)
	case r.slots[w.slot].state != inFree:
		return violationError("it has filled slot %d, which was not released", w.slot)
	}
	r.free--
	if c.closed {
		c.returnLocked(w.slot)
		return nil
	}
	r.slots[w.slot].state = inArrived
	r.arrived.Push(w)
	if r.wakeOne() {
		c.local.Woke()
	}
	c.returnDueLocked()
	return nil
}

// peerEnds records the peer's end. Loop goroutine.
func (c *Conn) peerEnds() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in.ended {
		return violationError("it has ended twice")
	}
	if c.in.ended = true; c.in.wakeOne() {
		c.local.Woke()
	}
	return nil
}
