package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/verbs"
)

// conn is a connection of either role: an identifier, its queue pair and its current step.
type conn struct {
	endpoint.Endpoint
	talk    talk
	timeout time.Duration // per step

	step     string // the next action expected of the peer or the device, for error messages
	deadline time.Time
	ending   bool // Disconnect was called
	over     bool
	err      error
}

// talk is one role's side of the protocol on a connection. An error ends the connection.
type talk interface {
	// handleEvent handles an event of the identifier that is neither a failure nor the end.
	handleEvent(ev cmid.Event) error
	// handleMessage handles a message of the peer.
	handleMessage(b buffer) error
	// handleDone handles the completion of a Read or a Write that this side has posted.
	handleDone(op verbs.Opcode) error
	// mayDisconnect reports whether the peer may disconnect now.
	mayDisconnect() bool
}

// Queue depths. At most a Write and two Sends are outstanding. The peer may send one message for
// each of this side's. The second receive is for a message that the peer sends out of turn.
const (
	sendDepth = 8
	recvDepth = 2
)

// depthParams returns parameters that ask for one outstanding Read in each direction, as rping
// does.
func depthParams() *cmid.ConnParam { return &cmid.ConnParam{ResponderResources: 1, InitiatorDepth: 1} }

// setUpQueuePair makes the queue pair and posts the receives.
func (c *conn) setUpQueuePair() error {
	if err := c.Create(sendDepth, recvDepth, c.pollCompletions); err != nil {
		return err
	}
	return c.Receive(recvDepth, bufferSize)
}

// sendBuffer sends b to the peer.
func (c *conn) sendBuffer(b buffer) error {
	return c.QP.PostSend(&verbs.SendWR{Op: verbs.Send, Flags: verbs.Signaled, Inline: b.encode()})
}

// startStep starts a step and its deadline.
func (c *conn) startStep(step string) {
	c.step, c.deadline = step, time.Now().Add(c.timeout)
}

// handleEvent handles an event of the identifier.
func (c *conn) handleEvent(ev cmid.Event) {
	switch e := ev.(type) {
	case cmid.Failure:
		c.fail(e)
		c.over = true
	case *cmid.Disconnected:
		if !c.ending {
			c.handleDisconnected(e.Err)
		}
		c.over = true
	default:
		if err := c.talk.handleEvent(ev); err != nil {
			c.fail(err)
			c.over = true
		}
	}
}

// handleDisconnected handles a disconnect that this side did not request.
func (c *conn) handleDisconnected(why error) {
	switch {
	case why != nil:
		c.fail(fmt.Errorf("the peer has gone: %w", why))
	case !c.talk.mayDisconnect():
		c.fail(errors.New("the peer has gone"))
	}
}

// pollCompletions handles completions. The device calls it inside GetEvent.
func (c *conn) pollCompletions() {
	c.Poll(func(wc *verbs.WC) bool {
		if c.ending || c.over || wc.Status == verbs.StatusFlushed {
			return true // the disconnect event has the reason
		}
		if err := c.handleCompletion(wc); err != nil {
			c.fail(err)
			c.hangUp()
		}
		return true
	})
}

func (c *conn) handleCompletion(wc *verbs.WC) error {
	switch {
	case wc.Status != verbs.StatusSuccess:
		return fmt.Errorf("%s: %v", opName(wc.Op), wc.Status)
	case wc.Op == verbs.Recv:
		b, err := decodeBuffer(c.Message(wc))
		if err != nil {
			return err
		}
		if err := c.Repost(wc.ID); err != nil { // before the answer lets the peer send again
			return err
		}
		return c.talk.handleMessage(b)
	case wc.Op == verbs.Send:
		return nil
	}
	return c.talk.handleDone(wc.Op)
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

// fail records why the connection ends, and at which step. It keeps only the first reason.
func (c *conn) fail(err error) {
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("%s: %w", c.step, err)
	}
}

// hangUp requests the end of the connection.
func (c *conn) hangUp() {
	c.ending = true
	if c.ID.Disconnect() != nil { // not connected, or no longer
		c.over = true
		return
	}
	c.startStep("disconnecting")
}

// failTimedOut ends the connection because its deadline has passed.
func (c *conn) failTimedOut() {
	c.fail(fmt.Errorf("no progress for %v", c.timeout))
	if c.ending {
		c.over = true
		return
	}
	c.hangUp()
}

// releaseAll frees the connection's resources.
func (c *conn) releaseAll() { c.fail(c.Close()) }
