package perf

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/verbs"
)

// conn is one side of a test: an identifier, its queue pair and its memory. Only the loop's
// goroutine may use it.
type conn struct {
	endpoint.Endpoint
	h    *host
	test Test
	data *verbs.MR // source and sink of this side's messages, and of the peer's Writes and Reads

	inline  bool // messages are posted inline, not from data
	message verbs.SendWR
	own     int // number of messages with separate memory; 0 or 1: all share one
	next    int // the next of these messages
	empty   verbs.SendWR

	// complete handles a completion. Its error ends the connection. ended is called once, when
	// everything is freed.
	complete func(wc *verbs.WC) error
	ended    func(err error)

	moved    int // completions so far
	watchdog *eventloop.Timer
	ending   bool // this side has requested the disconnect
	over     bool
	// refused is the error of posting to a queue pair that has ended. It may come before the
	// disconnect event.
	refused error
	err     error
}

// shape describes the resources of one side of a test.
type shape struct {
	sends     int  // work requests on the send queue
	slots     int  // receives
	whole     bool // receives have room for messages, not only for marks
	sendsData bool // it sends, writes or reads data
	exposed   bool // the peer writes or reads data
}

// markSize is the size in bytes of a receive for a mark. A mark is an empty Send.
const markSize = 8

// markDepth is more than the number of marks and answers to marks that can be in flight.
const markDepth = 16

// setUpQueuePair makes the queue pair and the memory, and posts the receives.
func (c *conn) setUpQueuePair(s shape) error {
	if err := c.Create(s.sends, s.slots, c.pollCompletions); err != nil {
		return err
	}
	size := markSize
	if s.whole {
		size = max(size, c.test.Size)
	}
	if err := c.Receive(s.slots, size); err != nil {
		return err
	}
	return c.prepareData(s)
}

func (c *conn) prepareData(s shape) (err error) {
	var access verbs.Access
	switch {
	case c.test.Op == Write && s.exposed:
		access = verbs.LocalWrite | verbs.RemoteWrite
	case c.test.Op == Read && s.exposed:
		access = verbs.RemoteRead
	case c.test.Op == Read:
		access = verbs.LocalWrite
	}
	if s.sendsData && c.test.Op != Read && c.test.Size <= c.ID.Device().Attr().MaxInline {
		c.inline = true
		if !s.exposed {
			return nil
		}
	}
	if s.sendsData || s.exposed {
		c.data, err = c.Alloc(max(c.own, 1)*c.test.Size, access)
	}
	return err
}

// memoryPlace returns the memory that the peer may write or read. It is zero if there is none.
func (c *conn) memoryPlace() place {
	if c.data == nil {
		return place{}
	}
	return place{c.data.Addr, c.data.RKey}
}

// prepareRequests prepares the work requests, which are reused for every message. peer is the place
// of the peer's data.
func (c *conn) prepareRequests(peer place) {
	c.empty = verbs.SendWR{Op: verbs.Send, Flags: verbs.Signaled}
	c.message = verbs.SendWR{RemoteAddr: peer.addr, RKey: peer.rkey}
	c.message.Op = map[Op]verbs.Opcode{Send: verbs.Send, Write: verbs.Write, Read: verbs.Read}[c.test.Op]
	if c.inline {
		c.message.Inline = make([]byte, c.test.Size)
	} else if c.data != nil {
		c.message.SGL = []verbs.SGE{{MR: c.data, Length: uint32(c.test.Size)}}
	}
}

// postMessage posts one message, that is, one operation of the test.
func (c *conn) postMessage(flags verbs.SendFlags) error {
	c.message.Flags = flags
	if c.own > 1 && !c.inline {
		c.message.SGL[0].Offset = uint32(c.next) * uint32(c.test.Size)
		c.next = (c.next + 1) % c.own
	}
	return c.QP.PostSend(&c.message)
}

// postMark posts an empty Send.
func (c *conn) postMark() error { return c.QP.PostSend(&c.empty) }

// postHalfTrip posts this side's half of a round trip, for a latency test of send or write.
func (c *conn) postHalfTrip() error {
	if c.test.Op == Send {
		return c.postMessage(verbs.Signaled)
	}
	return errors.Join(c.postMessage(verbs.Signaled), c.postMark())
}

// watchProgress ends the connection if there is no completion within the time limit.
func (c *conn) watchProgress() {
	seen := c.moved
	c.watchdog = c.h.loop.AfterFunc(c.h.cfg.Timeout, func() {
		switch {
		case c.moved != seen:
			c.watchProgress()
		case c.ending:
			c.scheduleRelease()
		default:
			c.fail(errors.Join(fmt.Errorf("no progress for %v", c.h.cfg.Timeout), c.refused))
		}
	})
}

// pollCompletions handles completions. The device calls it.
func (c *conn) pollCompletions() {
	c.Poll(func(wc *verbs.WC) bool {
		c.moved++
		if c.ending || c.over || wc.Status == verbs.StatusFlushed {
			return !c.over // the disconnect event has the reason
		}
		switch err := c.handleCompletion(wc); {
		case errors.Is(err, unix.EINVAL): // the connection has ended, and its event will follow
			c.refused = err
		case err != nil:
			c.fail(err)
		}
		return !c.over
	})
}

func (c *conn) handleCompletion(wc *verbs.WC) error {
	if wc.Status != verbs.StatusSuccess {
		return fmt.Errorf("%v: %v", wc.Op, wc.Status)
	}
	if wc.Op == verbs.Recv {
		if err := c.Repost(wc.ID); err != nil { // before the answer lets the peer send again
			return err
		}
	}
	return c.complete(wc)
}

// fail ends the connection. Only the first reason is kept.
func (c *conn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.hangUp()
}

// hangUp requests the end of the connection.
func (c *conn) hangUp() {
	if c.ending || c.over {
		return
	}
	c.ending = true
	if c.ID.Disconnect() != nil { // not connected, or no longer
		c.scheduleRelease()
	}
}

// handleDisconnected handles the end of the connection, whichever side requested it.
func (c *conn) handleDisconnected(why error) {
	if c.over {
		return
	}
	if !c.ending && why != nil && c.err == nil {
		c.err = fmt.Errorf("the peer has gone: %w", why)
	}
	c.ID.Do(&cmid.Disconnect{}, nil) // InfiniBand requires this answer; others refuse it
	c.scheduleRelease()
}

// failWithoutPeer ends a connection without a disconnect, because there is no peer.
func (c *conn) failWithoutPeer(why error) {
	if !c.over {
		c.ending, c.err = true, errors.Join(c.err, why)
		c.scheduleRelease()
	}
}

// scheduleRelease frees everything at the end of this turn. It cannot do so immediately, because it
// may be called inside a completion.
func (c *conn) scheduleRelease() {
	if c.over {
		return
	}
	c.over = true
	if c.watchdog != nil {
		c.watchdog.Stop()
	}
	c.h.loop.AfterFunc(0, func() {
		c.ended(errors.Join(c.err, c.Close()))
	})
}

// sinceNonZero returns time.Since, but never 0, so that rates are finite.
func sinceNonZero(t time.Time) time.Duration { return max(time.Since(t), 1) }
