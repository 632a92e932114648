package uverbs

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// CreateSRQ makes a shared receive queue.
func (d *device) CreateSRQ(attr verbs.SRQInitAttr) (verbs.SRQ, error) {
	if err := d.goneError(); err != nil {
		return nil, err
	}
	if attr.MaxWR <= 0 || attr.MaxWR > min(d.caps.MaxSRQWR, d.caps.MaxCQE, math.MaxInt32) {
		return nil, fmt.Errorf("uverbs: shared receive queue of %d: %w", attr.MaxWR, unix.EINVAL)
	}
	pd, err := d.domainOf(attr.PD)
	if err != nil {
		return nil, err
	}
	s := &sharedQueue{dev: d, pd: pd, attr: attr, slots: make([]slot, attr.MaxWR), free: make([]uint32, attr.MaxWR)}
	for i := range s.free {
		s.free[i] = uint32(attr.MaxWR - 1 - i)
	}
	s.event = d.addHandle(s)
	made, err := d.hw.CreateSRQ(pd.handle, attr.MaxWR, s.event)
	if err != nil {
		delete(d.handles, s.event)
		return nil, fmt.Errorf("uverbs: %s: create_srq of %d: %w", d.name, attr.MaxWR, d.explainLimit(err))
	}
	s.handle, s.ring = made.Handle, made.Queue
	pd.users++
	return s, nil
}

// PostRecv adds a receive.
func (s *sharedQueue) PostRecv(wr verbs.RecvWR) error {
	if s.gone || s.dev.lost != nil {
		return badWR("receive for a shared receive queue that is gone")
	}
	p, err := s.pd.checkRecv(&wr)
	if err != nil {
		return err
	}
	n := len(s.free)
	if n == 0 {
		return fmt.Errorf("uverbs: receive queue full, %d receives outstanding: %w", s.attr.MaxWR, unix.ENOMEM)
	}
	i := s.free[n-1]
	if !s.ring.Put(recvCookie|uint64(i), p) {
		return fmt.Errorf("uverbs: shared receive queue full: %w", unix.ENOMEM)
	}
	s.free = s.free[:n-1]
	s.slots[i] = slot{recv: recv{wr.ID, p.Length}, used: true}
	return nil
}

// takeReceive returns a completed receive and frees its slot.
func (s *sharedQueue) takeReceive(i uint64) (w recv, ok bool) {
	if i >= uint64(len(s.slots)) || !s.slots[i].used {
		return recv{}, false
	}
	w = s.slots[i].recv
	s.slots[i] = slot{}
	s.free = append(s.free, uint32(i))
	if s.early {
		s.early = false
		s.limitReached()
	}
	return w, true
}

// Arm sets the limit. The kernel checks the limit only when a receive is taken, so Arm itself
// checks whether it is reached already.
func (s *sharedQueue) Arm(limit int) error {
	if limit < 0 || limit > s.attr.MaxWR || s.gone {
		return fmt.Errorf("uverbs: limit of %d for a shared receive queue of %d: %w", limit, s.attr.MaxWR, unix.EINVAL)
	}
	if err := s.dev.goneError(); err != nil {
		return err
	}
	if err := s.armLimit(limit); err != nil {
		return err
	}
	s.limit = limit
	s.limitReached()
	return nil
}

func (s *sharedQueue) armLimit(limit int) error {
	if err := s.dev.hw.ArmSRQ(s.handle, limit); err != nil {
		return fmt.Errorf("uverbs: %s: modify_srq to a limit of %d: %w", s.dev.name, limit, err)
	}
	return nil
}

// limitReached makes OnLimit be called at the end of the turn if the queue is low. The queue may
// not be low if the event belongs to an earlier Arm. In that case the kernel has dropped the limit,
// and it is set again. OnLimit also waits for the completion of the receive that the kernel has
// just taken: until then its slot is not free, and the owner could not post another one.
func (s *sharedQueue) limitReached() {
	switch {
	case s.limit == 0 || s.gone:
	case s.ring.Left() >= s.limit:
		_ = s.armLimit(s.limit)
	case len(s.slots)-len(s.free) >= s.limit:
		s.early = true
	default:
		s.limit = 0
		if s.attr.OnLimit != nil && !s.low {
			s.low = true
			s.dev.low = append(s.dev.low, s)
			s.dev.deferRun()
		}
	}
}

// Close destroys the queue.
func (s *sharedQueue) Close() error {
	d := s.dev
	if s.users > 0 {
		return fmt.Errorf("uverbs: shared receive queue used by %d queue pairs: %w", s.users, unix.EBUSY)
	}
	if s.closed {
		return nil
	}
	s.closed = true
	s.pd.users--
	if d.lost == nil {
		if err := d.hw.DestroySRQ(s.handle); err != nil {
			s.closed = false
			s.pd.users++
			return fmt.Errorf("uverbs: %s: destroy_srq: %w", d.name, err)
		}
	}
	delete(d.handles, s.event)
	return s.release()
}

// release unmaps the queue.
func (s *sharedQueue) release() error {
	s.gone = true
	if s.ring == nil {
		return nil
	}
	r := s.ring
	s.ring = nil
	return r.Close()
}
