package endpoint

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// Endpoint is an identifier with its queue pair, receives and memory.
type Endpoint struct {
	ID *cmid.ID
	QP verbs.QP
	CQ verbs.CQ // serves sends and receives

	in   *verbs.MR // a slot for each receive
	slot uint32    // bytes of a slot
	mrs  []*verbs.MR
}

// Create makes the queue pair. Its completion queue calls notify.
func (e *Endpoint) Create(sends, receives int, notify func()) (err error) {
	dev := e.ID.Device()
	if dev == nil {
		return errors.New("the identifier has no device")
	}
	if e.CQ, err = dev.CreateCQ(sends+receives, notify); err != nil {
		return fmt.Errorf("create_cq: %w", err)
	}
	e.QP, err = e.ID.CreateQP(verbs.QPInitAttr{SendCQ: e.CQ, RecvCQ: e.CQ, MaxSendWR: sends, MaxRecvWR: receives})
	return err
}

// Alloc allocates n bytes of the device's memory. Close frees them.
func (e *Endpoint) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	mr, err := e.ID.Device().Alloc(n, access)
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes: %w", n, err)
	}
	e.mrs = append(e.mrs, mr)
	return mr, nil
}

// Receive posts n receives of size bytes each, with the IDs 0 to n-1.
func (e *Endpoint) Receive(n, size int) (err error) {
	e.slot = uint32(size)
	if e.in, err = e.Alloc(n*size, verbs.LocalWrite); err != nil {
		return err
	}
	for id := range uint64(n) {
		if err := e.Repost(id); err != nil {
			return err
		}
	}
	return nil
}

// Repost posts the receive with that ID again.
func (e *Endpoint) Repost(id uint64) error {
	sge := verbs.SGE{MR: e.in, Offset: uint32(id) * e.slot, Length: e.slot}
	return e.QP.PostRecv(verbs.RecvWR{ID: id, SGE: sge})
}

// Message returns the bytes that a receive has got. They are valid until the receive is posted
// again.
func (e *Endpoint) Message(wc *verbs.WC) []byte { return e.in.Bytes[wc.ID*uint64(e.slot):][:wc.Bytes] }

// Poll calls take with each available completion, until take returns false.
func (e *Endpoint) Poll(take func(wc *verbs.WC) (more bool)) {
	var wcs [32]verbs.WC
	for n := e.CQ.Poll(wcs[:]); n > 0; n = e.CQ.Poll(wcs[:]) {
		for i := range wcs[:n] {
			if !take(&wcs[i]) {
				return
			}
		}
	}
}

// Close destroys the identifier, its queues and its memory.
func (e *Endpoint) Close() error {
	dev := e.ID.Device()
	errs := []error{e.ID.Destroy()}
	if e.QP != nil {
		errs = append(errs, e.QP.Destroy()) // the identifier's end may still be under way
	}
	if e.CQ != nil {
		errs = append(errs, e.CQ.Close())
	}
	for _, mr := range e.mrs {
		errs = append(errs, dev.Free(mr))
	}
	return errors.Join(errs...)
}
