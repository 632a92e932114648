package endpoint

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// Endpoint is an identifier with its queue pair, its receives, and its memory.
type Endpoint struct {
	ID *cmid.ID
	QP verbs.QP
	CQ verbs.CQ // of both queues

	in   *verbs.MR // a slot for each receive
	slot uint32    // bytes of one
	mrs  []*verbs.MR
}

// Create makes the queue pair. notify is its completion queue's.
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

// Alloc has the device make memory of n bytes, which Close frees.
func (e *Endpoint) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	mr, err := e.ID.Device().Alloc(n, access)
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes: %w", n, err)
	}
	e.mrs = append(e.mrs, mr)
	return mr, nil
}

// Receive posts n receives of size bytes each, whose numbers are 0 to n-1.
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

// Repost posts the receive of that number again.
func (e *Endpoint) Repost(id uint64) error {
	sge := verbs.SGE{MR: e.in, Offset: uint32(id) * e.slot, Length: e.slot}
	return e.QP.PostRecv(verbs.RecvWR{ID: id, SGE: sge})
}

// Message is what a receive has got. It is valid until that is posted again.
func (e *Endpoint) Message(wc *verbs.WC) []byte { return e.in.Bytes[wc.ID*uint64(e.slot):][:wc.Bytes] }

// Poll gives take the completions there are, as long as it wants more.
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

// Close gives back everything that there is, the identifier too.
func (e *Endpoint) Close() error {
	dev := e.ID.Device()
	errs := []error{e.ID.Destroy()}
	if e.QP != nil {
		errs = append(errs, e.QP.Destroy()) // which may be on its way
	}
	if e.CQ != nil {
		errs = append(errs, e.CQ.Close())
	}
	for _, mr := range e.mrs {
		errs = append(errs, dev.Free(mr))
	}
	return errors.Join(errs...)
}
