package core

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// InputEnd reports the end of the peer's stream: FIN (nil) or a socket error.
func (c *Conn) InputEnd(now time.Time, err error) {
	if c.closeNow {
		return
	}
	c.closeSocket()
	e := &Error{Op: "receive", Errno: unix.ECONNRESET, Text: "connection closed by the peer"}
	if err != nil {
		e.Text = err.Error()
		if !errors.As(err, &e.Errno) {
			e.Errno = unix.EIO
		}
	}
	switch c.state {
	case stReply:
		e.Op, e.noReply = "reply", len(c.setup.frame) == 0
		e.Errno = unix.ECONNRESET // whatever the socket's error: rejected
		c.reportRejected(nil, e)
	case stIdle, stRequest, stAnswer:
		e.Op = "request"
		if c.state == stRequest {
			e.Text += fmt.Sprintf(", %d bytes of a Request were there", len(c.setup.frame))
		}
		c.setup.left = true
		c.closeProtocol(e)
	case stAccepted:
		c.closeProtocol(e)
	case stOpen, stFinishing:
		switch {
		case err != nil:
			c.closeProtocol(e)
		case c.inMessage():
			e.Text = "connection closed by the peer in the middle of a message"
			c.closeProtocol(e)
		default:
			c.closeProtocol(nil)
		}
	case stEnded:
	}
}

// Disconnect ends the connection (rdma_disconnect(3)). Sends that have not started complete with
// StatusFlushed. One that has started is finished. Then the FIN is sent. Closed comes with the
// peer's FIN, or after 5 s. If a message waits for a receive that will not be posted, call Keep.
// Before set-up is complete Disconnect is Abort.
func (c *Conn) Disconnect(now time.Time) {
	switch c.state {
	case stIdle, stRequest, stAnswer, stReply:
		c.Abort(now)
	case stAccepted, stOpen, stFinishing:
		c.state, c.shut = stFinishing, true
		c.phaseAt = now.Add(fin)
		c.pacing.stop()
		c.stream.dropUnstarted(&c.out)
		c.cutDone()
	case stEnded:
	}
}

// Abort ends the connection immediately: everything is flushed and Closed is called before it
// returns. The socket can then be closed, with two exceptions: an initiator whose Request was sent
// waits for the Reply, for 100 ms at most, and a responder first rejects a Request that was not
// answered.
func (c *Conn) Abort(now time.Time) {
	aborted := &Error{Op: "close", Errno: unix.ECONNABORTED, Text: "aborted"}
	switch c.state {
	case stReply: // the Request goes out if it can
		c.phaseAt = now.Add(abortReply)
		c.closeProtocol(aborted)
	case stAnswer:
		c.startLinger(now, c.setup.reject(nil))
		c.closeProtocol(aborted)
	case stIdle, stRequest, stAccepted, stOpen, stFinishing, stEnded:
		c.closeSocket()
		c.closeProtocol(aborted)
	}
}
