package datapath

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// ending is how a connection ends from this side: its goodbye, and the cause as far as this side
// knows it. The two are independent, as a queue pair may fail before, during and after the goodbye.
// Other code only reads its fields.
type ending struct {
	goodbye   goodbye
	certainty certainty
	goodbyeAt uint32           // number of the goodbye in flight
	cause     error            // nil: unknown; before causeDecided it is a *QueuePairError
	patience  *eventloop.Timer // of a failed queue pair; nil: none has failed
}

// goodbye is the progress of this side's goodbye. It only goes forward.
//
//	goodbyeUnsaid ──► goodbyeDue ──► goodbyePosted ──► goodbyeLeft
//	      └───────────────┴────────────────────────────────▲
//
// Nothing else is sent from goodbyeDue on (Conn.mayPost). An end that has waited for goodbyeTime
// (ident.sayGoodbye) continues as if the goodbye had left.
type goodbye uint8

const (
	goodbyeUnsaid goodbye = iota
	goodbyeDue            // there is no room for it yet
	goodbyePosted
	goodbyeLeft // completed, or it never will be sent
)

// certainty is how much this side knows about the cause of the end. It only grows, so the first
// cause of the highest certainty is kept.
//
//	causeUnknown ──► causeVague ──► causeFailure ──► causeDecided
//	     └──────────────┴─────────────────▲ └───────────▲
type certainty uint8

const (
	causeUnknown certainty = iota
	causeVague             // a failure of the queue pair that is likely a consequence
	causeFailure           // the failure of the queue pair
	causeDecided           // this side has broken the connection off, with this cause
)

// setGoodbye takes the next step. Builds that look for misuse end the process over a step that the
// diagram does not have.
func (e *ending) setGoodbye(to goodbye) {
	if overwrite.On && !e.goodbye.leadsTo(to) {
		panic(fmt.Sprintf("rdma: a goodbye in state %d cannot go to state %d", e.goodbye, to))
	}
	e.goodbye = to
}

// leadsTo reports whether the diagram has that step. A state may also be set again.
func (g goodbye) leadsTo(to goodbye) bool { return to == g || to == g+1 || to == goodbyeLeft }

// goodbyePosted notes that the goodbye is the posting of that number.
func (e *ending) goodbyePosted(number uint32) {
	e.setGoodbye(goodbyePosted)
	e.goodbyeAt = number
}

// setCause keeps cause unless one of the same certainty, or of a higher one, is known.
func (e *ending) setCause(to certainty, cause error) {
	if to > e.certainty {
		e.certainty, e.cause = to, cause
	}
}

// hasGoodbye reports whether the goodbye is due, posted or has left.
func (e *ending) hasGoodbye() bool { return e.goodbye != goodbyeUnsaid }

// awaitsGoodbye reports whether the goodbye is still to leave.
func (e *ending) awaitsGoodbye() bool { return e.goodbye == goodbyeDue || e.goodbye == goodbyePosted }

// brokenBy returns the cause if this side has broken the connection off.
func (e *ending) brokenBy() error {
	if e.certainty < causeDecided {
		return nil
	}
	return e.cause
}

// queuePairFailed notes a failure of the queue pair. overdue is called after FailPatience, unless
// stopTimer is called before.
func (e *ending) queuePairFailed(failure *QueuePairError, el *eventloop.Loop, overdue func()) {
	if failure.isVague() {
		e.setCause(causeVague, failure)
	} else {
		e.setCause(causeFailure, failure)
	}
	if e.patience == nil {
		e.patience = el.AfterFunc(FailPatience, overdue)
	}
}

// stopTimer stops the timer of a failed queue pair.
func (e *ending) stopTimer() {
	if e.patience != nil {
		e.patience.Stop()
	}
}

// finalCause returns the cause of the end. reported is the device's, own is this side's reason for
// the end; both may be nil. peerLeft: the peer's goodbye has ended the connection, whatever failed
// afterwards.
func (e *ending) finalCause(reported, own error, peerLeft bool) error {
	switch {
	case e.certainty == causeDecided:
		return e.cause
	case e.certainty == causeFailure && !peerLeft:
		failure, _ := errors.AsType[*QueuePairError](e.cause)
		failure.Err = reported
		return failure
	case reported == nil:
		return own // a shutdown is not reported as the peer's end
	}
	return reported
}

// The side that ends a connection says goodbye first (docs/wire.md). The goodbye follows everything
// that was posted, and nothing follows the goodbye: messages that still wait are not sent. So if a
// connection ends without one, its peer was killed or cannot be reached.
//
// A work request that is posted is not yet on the wire, and on InfiniBand a disconnect drops it. So
// this side waits for the goodbye's completion before it disconnects, for at most goodbyeTime
// (ident.sayGoodbye), in case the peer receives nothing.

// Leaving reports whether this side has begun to say goodbye.
func (c *Conn) Leaving() bool { return c.end.hasGoodbye() }

// ForgoGoodbye ends the wait for the goodbye, if there is one.
func (c *Conn) ForgoGoodbye() {
	if c.end.hasGoodbye() {
		c.end.setGoodbye(goodbyeLeft)
	}
}

// SayGoodbye posts the goodbye, once. False: there is nothing to wait for.
func (c *Conn) SayGoodbye() bool {
	c.Out.postGathered()
	switch {
	case !c.Session.Agreed() || c.end.goodbye == goodbyeLeft || c.ID.State() != states.Connected:
		return false
	case c.Sec.isMute():
		c.end.setGoodbye(goodbyeLeft) // this side ends the connection without one
		return false
	case c.end.goodbye == goodbyePosted:
		return true
	}
	c.end.setGoodbye(goodbyeDue)
	if !c.Out.Flight.hasRoom() {
		return true // a completion makes room
	}
	switch err := c.Out.postGoodbye(); {
	case err == nil:
		c.end.goodbyePosted(c.Out.lastNumber())
	case errors.Is(err, errNoRoom):
	default:
		c.end.setGoodbye(goodbyeLeft)
		return false
	}
	return true
}

// goodbyeResume continues the goodbye after the device has completed something.
func (c *Conn) goodbyeResume() {
	switch c.end.goodbye {
	case goodbyeDue:
		if c.SayGoodbye() {
			return
		}
	case goodbyePosted:
		if !c.Out.Flight.hasCompleted(c.end.goodbyeAt) {
			return
		}
	default:
		return
	}
	c.end.setGoodbye(goodbyeLeft)
	c.identifier.GoodbyeLeft()
}

// postControl posts a message that is only a header.
func (out *sending) postControl(typ wire.Type, flags uint8) error {
	var b [wire.HeaderLen]byte
	out.c.Session.Header(typ, flags).Put(b[:])
	if err := out.c.Device.postMessage(out.c, nil, b[:], false); err != nil {
		return err
	}
	out.c.Session.Sent(typ, flags)
	return nil
}

// BreakDown stops the data path, with err as the cause of its end; nil: the peer has said goodbye.
func (c *Conn) BreakDown(err error) {
	if err != nil {
		c.end.setCause(causeDecided, err)
	}
	c.Stop()
}

// BrokenBy returns the cause with which this side has broken the connection off; nil: it has not.
func (c *Conn) BrokenBy() error { return c.end.brokenBy() }

// Verdict returns the cause of the end that follows from the goodbyes, after the device has
// reported err, which may be nil.
func (c *Conn) Verdict(err error) error {
	switch {
	case !c.Session.Agreed() || c.state == connConnecting || c.state == connAborted || c.end.hasGoodbye():
		return err
	case !c.Session.Goodbye():
		if err == nil {
			err = unix.ECONNRESET
		}
		return &LostError{err}
	case errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ETIMEDOUT):
		return nil // the peer had announced its end
	}
	return err
}

// Cause returns the cause of the end. err is the device's report, own is this side's reason for the
// end; both may be nil.
func (c *Conn) Cause(err, own error) error { return c.end.finalCause(err, own, c.Session.Goodbye()) }

// A queue pair that has failed has ended its connection, whatever rdma_cm reports: on InfiniBand
// rdma_cm does not look at queue pairs, and would call the connection connected forever. So every
// work request that completes with an error ends the connection, whether it was an owner's message,
// a credit update, an offer or a receive; and so does the event QPFailed. The first error is the
// cause, not the flushes that follow. A work request that the device does not accept (ENOMEM, a
// Read of memory that does not exist) fails alone.
//
// Two kinds of failure have to wait. Flushes and refused postings are only consequences, and the
// error or the end that is their cause may still be on its way. And on iWARP the device itself ends
// the connection, with a better reason (from a Terminate message). So these break the connection
// off only if its end is not reported within FailPatience. In an ordinary end, the flushes arrive
// when the connection is already ending or has ended.

// FailPatience is how long the device has to report the end of a connection whose queue pair has
// failed.
const FailPatience = 2 * time.Second

// queuePairFailed handles a sign that the queue pair is dead. Loop goroutine, possibly called from
// inside the device.
func (c *Conn) queuePairFailed(e *QueuePairError) {
	iwarp := c.ID.Flavor()&states.IWARP != 0
	switch {
	case c.Over() || !iwarp && !c.isConnected():
	case !iwarp && !e.isConsequence():
		c.identifier.BreakOff(e)
	default:
		c.end.queuePairFailed(e, c.l.el, func() {
			if c.isConnected() { // its end was not reported
				c.identifier.BreakOff(c.end.cause)
			}
		})
	}
}

// queuePairRefused handles a posting that the device refused, which it does not while the queue
// pair is alive.
func (c *Conn) queuePairRefused(op verbs.Opcode, err error) {
	c.queuePairFailed(&QueuePairError{Op: op, Err: err})
}

// isConnected reports whether there is a connection, as far as rdma_cm knows.
func (c *Conn) isConnected() bool {
	s := c.ID.State()
	return s == states.Connected || s == states.Accepting
}

// FailedByItself handles the device's event that the queue pair has failed, after the completions
// that precede it.
func (c *Conn) FailedByItself() {
	c.Device.Drain()
	c.queuePairFailed(&QueuePairError{})
}

// postGoodbye posts the last message.
func (out *sending) postGoodbye() error {
	if out.c.Sec != nil && out.c.Sec.alert != nil {
		return out.c.Sec.postFrame(out.c.Sec.alert)
	}
	if out.c.Sec != nil && out.c.Sec.refusal != nil {
		return out.c.Sec.sendFirst(out.c.Sec.last, out.c.Sec.refusal)
	}
	return out.postControl(wire.TypeGoodbye, 0)
}

// lastNumber returns the number of the last posting, or of the next if it is owed.
func (out *sending) lastNumber() uint32 {
	if out.c.Sec != nil && out.c.Sec.owed.due {
		return out.Flight.nextNumber()
	}
	return out.Flight.nextNumber() - 1
}
