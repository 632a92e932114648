package iwarp

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

const (
	// readBudget (bytes), turnMessages and the rounds limit how much one connection receives before
	// others have their turn: each message costs its owner time. The number of messages in a read
	// is not known in advance. So the part of a read without a known destination is limited to
	// turnMessages messages of the size in the last read. The first read asks for readLeast bytes.
	readBudget   = 1 << 20
	turnMessages = 1 << 10
	readRounds   = 32
	readLeast    = 32 << 10
	writeRounds  = 64
	alignEach    = 1 << 20 // bytes written between two checks of TCP's segment size
)

// conn is a TCP connection and the protocol on it. It begins as an accepted socket without an
// identifier, or with the queue pair of a connecting identifier. It may outlive its identifier
// while it must still send or receive a FIN.
type conn struct {
	in   *instance
	core core.Conn
	id   *driverID  // nil: no Request yet, or lingering
	qp   *queuePair // nil: none yet, or destroyed
	// what only the set-up needs. Both are nil when that is over.
	arriving *arriving // a responder's, until its Request is complete
	dialing  *dialing  // an initiator's, until it is established or has failed
	timer    timer     // calls handleTimeout

	socket
	inflow

	initiator   bool
	established bool
	fresh       bool  // established, and never at rest since
	over        bool  // the core has called Closed
	silent      bool  // the code that ends the core reports the reason
	dirty       bool  // in the instance's list of connections to write
	asked       depth // in a responder's Request

	tap *tap // part in a capture; nil: none, or not known yet

	older, newer *conn // connList
}

// arriving is a connection whose Request is not complete.
type arriving struct {
	lis         *listener // has accepted it
	local, peer cmid.Addr
}

// dialing is what a second attempt to connect needs.
type dialing struct {
	config core.Config
	again  *core.Conn // the receives for the second attempt; nil: it is not due
	first  error      // of the first attempt; nil: this is the first
}

func newConn(in *instance) *conn { return &conn{in: in, socket: socket{fd: -1}} }

// attachFD registers fd, which from then on belongs to c.
func (c *conn) attachFD(fd int, interest eventloop.Events) error {
	reg, err := c.in.loop.Add(fd, interest, c)
	if err != nil {
		return err
	}
	c.fd, c.reg, c.phase = fd, reg, phRunning
	c.in.conns++
	return nil
}

// closeSocket closes the socket. The core stays, because methods may still be called on it.
func (c *conn) closeSocket() {
	if c.fd >= 0 {
		c.captureClose(false)
		_ = c.reg.Remove() // the fd is open, so this cannot fail
		c.in.closeFD(c.fd)
		c.fd, c.reg = -1, nil
		c.in.conns--
	}
	c.timer.release()
	c.blocked, c.watched, c.shut, c.loss = false, false, false, nil
	c.waitOver()
}

// close closes the socket, and ends the connection for good.
func (c *conn) close() {
	c.closeSocket()
	c.phase = phClosed
	c.requestDone()
	c.in.lingers.remove(c)
}

// Ready is called by the loop.
func (c *conn) Ready(ev eventloop.Events) {
	now := c.in.loop.Now()
	switch c.phase {
	case phConnecting:
		c.dialCompleted(now)
	case phDiscarding:
		c.discardInput()
	case phRunning:
		switch {
		case ev&^eventloop.Writable == 0:
		case c.waits:
			c.handleLoss(now, nil)
		default:
			c.readInput()
		}
		if ev&eventloop.Writable != 0 && c.blocked && c.loss == nil {
			c.resumeWriting(now)
		}
	case phIdle, phClosed: // no socket
	}
	c.applyCoreState(now)
	c.in.deliverReports()
}

// Glance is called by a polling loop, if this connection was the last to be ready.
func (c *conn) Glance() (worked bool) {
	if c.phase != phRunning {
		return false
	}
	if !c.readInput() {
		return false
	}
	c.applyCoreState(c.in.loop.Now())
	c.in.deliverReports()
	return true
}

// readInput reads the available bytes, and reports whether there were any. If a large payload has
// partly arrived, one call reads the rest to its destination and the following bytes to the input
// buffer.
func (c *conn) readInput() (any bool) {
	if !c.core.Waiting() {
		any = c.readSocket()
	}
	if c.core.Waiting() && !c.waits {
		c.stopReading()
	}
	return any
}

func (c *conn) readSocket() (any bool) {
	in := c.in
	in.keepInput()
	for budget, round := readBudget, 0; budget > 0 && round < readRounds; round++ {
		var n int
		var err error
		before := c.completed
		in.land = c.core.Landings(in.land[:0], in.peek[:])
		buf := c.inputBuffer(c.core.Rest())
		if len(in.land) == 0 && c.core.Bulk() {
			buf = buf[:min(len(buf), c.core.Rest()+peekLen)]
		}
		want := len(buf)
		if len(in.land) > 0 {
			n, err = in.sys.Readv(c.fd, in.land)
			want = totalSize(in.land)
		} else {
			n, err = in.sys.Recv(c.fd, buf)
		}
		switch err {
		case unix.EAGAIN:
			if c.loss == nil {
				return any
			}
			err = c.lossCause() // no more data arrives
		case unix.EINTR:
			continue
		}
		now := c.in.loop.Now()
		switch {
		case err != nil:
			c.captureEnd(err)
			c.core.InputEnd(now, err)
			return true
		case n == 0:
			err = c.loss.streamEnd()
			c.captureEnd(err)
			c.core.InputEnd(now, err)
			return true
		}
		any = true
		if t := c.currentTap(); t != nil {
			t.addRead(c, n, append(in.land, buf)) // one of the two
		}
		c.came += uint64(n)
		if len(in.land) > 0 {
			c.core.Landed(now, in.land, n, in.input)
			clear(in.land)
		} else {
			c.core.Input(now, buf[:n])
		}
		if c.core.Waiting() {
			in.unkept = c
			c.addWaiting()
			c.applyCoreState(now) // before the application's code, which may panic
			in.deliverReports()
		}
		if _, closeNow := c.core.WantClose(); closeNow || n < want || c.core.Waiting() || c.phase != phRunning {
			return any
		}
		budget -= n
		if messages := c.completed - before; messages > 0 {
			c.each = n / messages
			budget -= messages * (readBudget / turnMessages)
		}
	}
	return any
}

// writeOutput writes the core's pending output, until the socket is full.
func (c *conn) writeOutput(now time.Time) {
	if c.blocked || !c.isRunning() {
		return
	}
	in := c.in
	for range writeRounds {
		if !c.core.Pending() {
			return
		}
		flags := 0
		if c.core.CRC() && c.established {
			flags = unix.MSG_EOR
		}
		in.iov = c.core.Gather(in.iov[:0])
		want := totalSize(in.iov)
		n, err := in.sys.Send(c.fd, in.iov, flags)
		if t := c.currentTap(); t != nil && n > 0 {
			t.addWritten(c, n, in.iov)
		}
		clear(in.iov)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			c.core.Advance(now, 0)
			c.waitWritable()
			return
		case err != nil:
			c.handleLoss(now, err)
			return
		}
		before := c.went
		c.went += uint64(n)
		c.core.Advance(now, n)
		if flags != 0 && before/alignEach != c.went/alignEach {
			c.alignSegments()
		}
		if n < want {
			c.waitWritable()
			return
		}
	}
	c.waitWritable() // the others first
}

// totalSize returns the total length of bufs.
func totalSize(bufs [][]byte) (n int) {
	for _, b := range bufs {
		n += len(b)
	}
	return n
}

// waitWritable waits until the socket is writable.
func (c *conn) waitWritable() {
	if !c.core.Pending() {
		return
	}
	c.blocked = true
	if !c.watched {
		c.watched = true
		c.watched = c.reg.Modify(c.events()) == nil
	}
}

// resumeWriting continues writing.
func (c *conn) resumeWriting(now time.Time) {
	c.blocked = false
	c.writeOutput(now)
	if !c.blocked && c.phase == phRunning {
		c.watched = false
		_ = c.reg.Modify(c.events()) // the fd is open, so this cannot fail
	}
}

// applyCoreState does what the core's state demands after each call: it closes the socket or shuts
// it down, schedules output, and sets the timer.
func (c *conn) applyCoreState(now time.Time) {
	if c.phase != phRunning {
		return
	}
	if c.dialing.mustRetry() {
		c.retryRevision1(now)
		return
	}
	shut, closeNow := c.core.WantClose()
	if closeNow {
		c.close()
		return
	}
	c.checkWaiting()
	if shut && !c.shut {
		c.shut = true
		c.sendFIN()
	}
	if c.core.Pending() {
		c.in.scheduleOutput(c)
	}
	at, ok := c.core.Deadline()
	if l := c.loss; l != nil && (!ok || l.until.Before(at)) {
		at, ok = l.until, true
	}
	switch {
	case ok:
		c.timer.arm(c, now, at)
	case c.timer.at.IsZero():
	case c.fresh: // the set-up's timer: an idle connection has none
		c.timer.release()
		c.fresh = false
	default:
		c.timer.stop()
	}
}

func (c *conn) handleTimeout() {
	now := c.in.loop.Now()
	c.timer.at = time.Time{}
	switch c.phase {
	case phConnecting:
		// the loop was not busy, the peer has not answered
		if c.dialCompleted(now); c.phase == phConnecting {
			c.connectFailed(now, &core.Error{
				Op: "connect", Errno: unix.ETIMEDOUT, Text: "no TCP connection within " + c.in.cfg.ReplyTimeout.String(),
			})
		}
		c.applyCoreState(now)
	case phDiscarding:
		c.close()
	case phRunning:
		for c.core.Overdue(now) && !c.core.Waiting() && c.readInput() {
			// a read may return less than the available data
		}
		c.lossTimeout(now)
		if c.core.HoldOver(now) && c.in.unackedBytes(c.fd) > 0 {
			c.core.HoldOn(now)
		}
		c.core.Timeout(now)
		c.writeOutput(now)
		c.applyCoreState(now)
	case phIdle, phClosed: // the timer was stopped with the socket
	}
	c.in.deliverReports()
}

// Established is called by the core.
func (c *conn) Established(private []byte, ird, ord uint16) {
	var first error
	if c.dialing != nil {
		first = c.dialing.first
	}
	c.established, c.fresh, c.dialing = true, true, nil
	if c.core.CRC() {
		c.alignSegments()
	}
	if c.id != nil {
		c.id.queueEvent(cmid.DriverEvent{
			Kind: states.KindEstablished, PrivateData: private, Err: first,
			Param: cmid.ConnParam{ResponderResources: paramDepth(ird), InitiatorDepth: paramDepth(ord)},
		})
	}
}

// endSetup follows the delivery of Established.
func (c *conn) endSetup() {
	if c.qp != nil {
		c.qp.releaseEarly()
	}
	if c.unguarded && c.fd >= 0 {
		c.unguarded = false
		_ = c.in.setLossOptions(c.fd) // of an open socket, so this cannot fail
	}
}

// alignSegments makes FPDUs as large as a TCP segment, because a soft-iWARP receiver considers a
// CRC wrong that is split over two segments. A TCP segment is at most half as large as the largest
// window that the peer has offered. So segments grow while a connection is young, on loopback from
// 32 to 64 KiB. The network path may make them smaller.
func (c *conn) alignSegments() {
	if mss, err := c.in.sys.Option(c.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG); err == nil && mss > core.Overhead+8 {
		c.core.SetMaxSegment((mss - core.Overhead) &^ 7)
	}
}

// Complete is called by the core.
func (c *conn) Complete(wc verbs.WC, solicited bool) {
	c.completed++
	if c.qp != nil {
		c.qp.addCompletion(wc, solicited)
	}
}

// Closed is called by the core, last.
func (c *conn) Closed(err error) {
	if c.dialing.mustRetry() {
		return
	}
	c.over = true
	if c.qp != nil && !c.established {
		c.qp.releaseEarly() // there will be no Established
	}
	switch {
	case c.arriving != nil:
		c.arriving.recordStranger(err)
	case c.id == nil || c.silent:
	case c.established:
		c.id.queueEvent(cmid.DriverEvent{Kind: states.KindDisconnected, Err: err})
	case c.initiator:
		if c.dialing != nil { // otherwise Rejected has reported it
			c.connectEvent(nil, err)
		}
	case c.id.answered && err != nil: // accepted, but the peer left before it was established
		kind := states.KindConnectError
		if errnoOf(err) == unix.ETIMEDOUT {
			kind = states.KindUnreachable
		}
		c.id.queueEvent(cmid.DriverEvent{Kind: kind, Status: -int32(errnoOf(err)), Err: err})
	}
}
