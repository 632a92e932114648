package main

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// endpoint is an identifier with its queue pair, and with room for the messages of one size that
// it shall receive.
type endpoint struct {
	id   *cmid.ID
	seen map[states.Kind]cmid.Event // the last of each kind

	qp verbs.QP
	cq verbs.CQ
	// a slot for each message, behind the place of its routing header if there is one
	in    *verbs.MR
	out   *verbs.MR // what is sent, again and again
	front uint32    // bytes in front of a received message
	size  uint32
	ah    verbs.AH // of datagrams: where they go

	received, sent int
	first          verbs.WC // the first message's completion
	disconnecting  bool
}

// prepare makes the queue pair, and posts receives for messages of size bytes.
func (e *endpoint) prepare(messages, size int) (err error) {
	dev := e.id.Device()
	e.size = uint32(size)
	if e.id.Datagram() {
		e.front = verbs.GRHLen
	}
	if e.cq, err = dev.CreateCQ(2*messages, func() {}); err != nil {
		return err
	}
	e.qp, err = e.id.CreateQP(verbs.QPInitAttr{SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: messages, MaxRecvWR: messages})
	if err != nil {
		return err
	}
	slot := e.front + e.size
	if e.in, err = dev.Alloc(messages*int(slot), verbs.LocalWrite); err != nil {
		return err
	}
	if e.out, err = dev.Alloc(size, 0); err != nil {
		return err
	}
	for i := range e.out.Bytes {
		e.out.Bytes[i] = byte(i)
	}
	for i := range uint32(messages) {
		sge := verbs.SGE{MR: e.in, Offset: i * slot, Length: slot}
		if err := e.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGE: sge}); err != nil {
			return err
		}
	}
	return nil
}

// send posts messages; wr says where they go, the zero value to the connection's peer.
func (e *endpoint) send(messages int, wr verbs.SendWR) error {
	wr.Flags = verbs.Signaled
	wr.SGL = []verbs.SGE{{MR: e.out, Length: e.size}}
	for range messages {
		if err := e.qp.PostSend(&wr); err != nil {
			return err
		}
	}
	return nil
}

// poll takes the completions there are.
func (e *endpoint) poll() error {
	var wcs [16]verbs.WC
	for n := e.cq.Poll(wcs[:]); n > 0; n = e.cq.Poll(wcs[:]) {
		for _, wc := range wcs[:n] {
			if err := e.complete(wc); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *endpoint) complete(wc verbs.WC) error {
	switch {
	case wc.Status == verbs.StatusFlushed: // the event of the end says why
		return nil
	case wc.Status != verbs.StatusSuccess:
		return fmt.Errorf("%v: %v", wc.Op, wc.Status)
	case wc.Op != verbs.Recv:
		e.sent++
		return nil
	case wc.Bytes != e.front+e.size:
		return fmt.Errorf("message %d has %d bytes, want %d", e.received, wc.Bytes-e.front, e.size)
	}
	if e.received == 0 {
		e.first = wc
	}
	e.received++
	return nil
}

// event takes what happened to the identifier and is no failure.
func (e *endpoint) event(ev cmid.Event) error {
	e.seen[ev.Kind()] = ev
	switch ev := ev.(type) {
	case *cmid.DeviceRemoval:
		return errors.New("the device has been removed")
	case *cmid.Disconnected:
		if ev.Err != nil {
			return ev.Err
		}
		return e.disconnect() // InfiniBand's peer waits for it
	}
	return nil
}

// disconnect asks for the end, or consents to the peer's, once.
func (e *endpoint) disconnect() error {
	if e.disconnecting {
		return nil
	}
	e.disconnecting = true
	return e.id.Disconnect()
}

// close gives back what the endpoint has.
func (e *endpoint) close() error {
	dev := e.id.Device()
	errs := []error{e.id.Destroy()}
	if e.qp != nil {
		errs = append(errs, e.qp.Destroy()) // which may be on its way
	}
	if e.ah != nil {
		errs = append(errs, e.ah.Close())
	}
	if e.cq != nil {
		errs = append(errs, e.cq.Close())
	}
	for _, mr := range []*verbs.MR{e.in, e.out} {
		if mr != nil {
			errs = append(errs, dev.Free(mr))
		}
	}
	return errors.Join(errs...)
}
