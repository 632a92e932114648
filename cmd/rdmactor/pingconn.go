package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// conn is a connection of either role: an identifier, its queue pair, and the step it is at.
type conn struct {
	id      *cmid.ID
	talk    talk
	timeout time.Duration // for each step

	qp   verbs.QP
	cq   verbs.CQ
	recv *verbs.MR // where the peer's messages go: recvDepth of them
	mrs  []*verbs.MR

	step     string // what the peer, or the device, shall do next: for messages
	deadline time.Time
	ending   bool // Disconnect was asked for
	over     bool
	err      error
}

// talk is one role's side of the conversation on a connection. An error ends the connection.
type talk interface {
	// event takes what happened to the identifier, but for failures and the end.
	event(ev cmid.Event) error
	// received takes a message of the peer's: its buffer.
	received(b buffer) error
	// done takes a Read or a Write of ours.
	done(op verbs.Opcode) error
	// idle says whether the peer may go now.
	idle() bool
}

// Queue depths. At most a Write and two Sends are outstanding; the peer may send once for each Send
// of ours, and what it sends out of turn shall be seen.
const (
	sendDepth = 8
	recvDepth = 2
)

// depths is one outstanding Read in each direction, as rping asks for.
func depths() *cmid.ConnParam { return &cmid.ConnParam{ResponderResources: 1, InitiatorDepth: 1} }

// prepare makes the queue pair and posts the receives.
func (c *conn) prepare() (err error) {
	dev := c.id.Device()
	if c.cq, err = dev.CreateCQ(sendDepth+recvDepth, c.completed); err != nil {
		return err
	}
	c.qp, err = c.id.CreateQP(verbs.QPInitAttr{SendCQ: c.cq, RecvCQ: c.cq, MaxSendWR: sendDepth, MaxRecvWR: recvDepth})
	if err != nil {
		return err
	}
	if c.recv, err = c.alloc(recvDepth*bufferSize, verbs.LocalWrite); err != nil {
		return err
	}
	for slot := range uint64(recvDepth) {
		if err := c.postRecv(slot); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) alloc(n int, access verbs.Access) (*verbs.MR, error) {
	mr, err := c.id.Device().Alloc(n, access)
	if err == nil {
		c.mrs = append(c.mrs, mr)
	}
	return mr, err
}

// postRecv posts the receive whose number is slot.
func (c *conn) postRecv(slot uint64) error {
	sge := verbs.SGE{MR: c.recv, Offset: uint32(slot) * bufferSize, Length: bufferSize}
	return c.qp.PostRecv(verbs.RecvWR{ID: slot, SGE: sge})
}

// send sends b to the peer.
func (c *conn) send(b buffer) error {
	return c.qp.PostSend(&verbs.SendWR{Op: verbs.Send, Flags: verbs.Signaled, Inline: b.encode()})
}

// expect begins a step.
func (c *conn) expect(step string) {
	c.step, c.deadline = step, time.Now().Add(c.timeout)
}

// event takes what happened to the identifier.
func (c *conn) event(ev cmid.Event) {
	switch e := ev.(type) {
	case cmid.Failure:
		c.fail(e)
		c.over = true
	case *cmid.Disconnected:
		if !c.ending {
			c.gone(e.Err)
		}
		c.over = true
	default:
		if err := c.talk.event(ev); err != nil {
			c.fail(err)
			c.over = true
		}
	}
}

// gone judges an end that this side did not ask for.
func (c *conn) gone(why error) {
	switch {
	case why != nil:
		c.fail(fmt.Errorf("the peer has gone: %w", why))
	case !c.talk.idle():
		c.fail(errors.New("the peer has gone"))
	}
}

// completed handles completions; the device calls it inside GetEvent.
func (c *conn) completed() {
	var wcs [sendDepth + recvDepth]verbs.WC
	for n := c.cq.Poll(wcs[:]); n > 0; n = c.cq.Poll(wcs[:]) {
		for _, wc := range wcs[:n] {
			if c.ending || c.over || wc.Status == verbs.StatusFlushed {
				continue // the event of the end says why
			}
			if err := c.complete(wc); err != nil {
				c.fail(err)
				c.hangUp()
			}
		}
	}
}

func (c *conn) complete(wc verbs.WC) error {
	switch {
	case wc.Status != verbs.StatusSuccess:
		return fmt.Errorf("%s: %v", opName(wc.Op), wc.Status)
	case wc.Op == verbs.Recv:
		b, err := decodeBuffer(c.recv.Bytes[wc.ID*bufferSize:][:wc.Bytes])
		if err != nil {
			return err
		}
		if err := c.postRecv(wc.ID); err != nil { // before the answer that lets the peer send again
			return err
		}
		return c.talk.received(b)
	case wc.Op == verbs.Send:
		return nil
	}
	return c.talk.done(wc.Op)
}

func opName(op verbs.Opcode) string {
	switch op {
	case verbs.Recv:
		return "receive"
	case verbs.Read:
		return "read"
	case verbs.Write:
		return "write"
	}
	return "send"
}

// fail notes why the connection ends, and at which step; the first reason counts.
func (c *conn) fail(err error) {
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("%s: %w", c.step, err)
	}
}

// hangUp asks for the end.
func (c *conn) hangUp() {
	c.ending = true
	if c.id.Disconnect() != nil { // not connected, or no more
		c.over = true
		return
	}
	c.expect("disconnecting")
}

// late ends a connection whose deadline has passed.
func (c *conn) late() {
	c.fail(fmt.Errorf("nothing for %v", c.timeout))
	if c.ending {
		c.over = true
		return
	}
	c.hangUp()
}

// free gives back what the connection has.
func (c *conn) free() {
	dev := c.id.Device()
	errs := []error{c.id.Destroy()}
	if c.qp != nil {
		errs = append(errs, c.qp.Destroy()) // which may be on its way
	}
	if c.cq != nil {
		errs = append(errs, c.cq.Close())
	}
	for _, mr := range c.mrs {
		errs = append(errs, dev.Free(mr))
	}
	if err := errors.Join(errs...); err != nil {
		c.fail(err)
	}
}
