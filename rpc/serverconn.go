package rpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/inflight"
	"github.com/rdmactor/rdmactor/rpc/internal/share"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// serverConn is a connection of a server: the actor that owns its identifier. Only the loop uses
// its fields, except those that out.mu guards.
type serverConn struct {
	s        *Server
	out      out
	id       *actor.PID
	peer     rdma.Addr
	identity string
	tls      *tls.ConnectionState
	local    rdma.Local
	version  uint8      // of the protocol, as both sides speak it
	limit    int        // largest message that the peer takes
	window   int64      // initial window of a stream whose items this side sends
	methods  []*handler // indexed by declared number; nil: there is no such method here
	backlog
	joined  bool
	needs   int         // memory for the last request, in bytes
	unread  int         // bytes of parts that were read, and not confirmed
	locked  bool        // out.mu is locked for items
	wakes   wakeList    // goroutines that wait for an item or a window that has come
	ending  bool        // the peer broke the protocol, or close was called
	closing bool        // all calls are answered: the last drain frame follows their answers
	last    bool        // the last drain frame is queued; Close follows when everything was sent
	leaving bool        // Close was sent, which waits for the peer
	timer   *time.Timer // of MaxConnectionAge, or of its grace; nil: not set
	graceBy time.Time   // when the grace of MaxConnectionAge is over; zero: it has not begun
	inline  *serverCall

	// Handed to the workers at the end of a message.
	head, tail *serverCall

	calls []*serverCall // indexed by slot; out.mu
	connCounts
	share share.Conn
}

// The messages of a Server to its connections.
type (
	drain  struct{} // notifies the client
	finish struct{} // after all answers
	old    struct{} // the connection has lasted for MaxConnectionAge
	abort  struct{}
)

func newServerConn(s *Server) *serverConn {
	return &serverConn{s: s, out: out{ahead: inflight.Window{Limits: &ahead}}}
}

// Receive implements actor.Actor.
func (c *serverConn) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Received:
		c.handleReceived(ctx, m)
	case *flush:
		c.flushOut(ctx)
	case *rdma.Sent:
		c.out.ahead.Noticed()
		c.flushOut(ctx)
	case *resume:
		c.waits = false
		c.flushOut(ctx)
	case *overdue:
		c.rejectOverdue(m.call)
		c.handOver()
		c.flushOut(ctx)
	case *rdma.ConnectRequest:
		c.handleRequest(ctx, m)
	case *rdma.Established:
		c.handleEstablished(ctx, m)
	case *drain:
		c.sendDrain(ctx)
	case *old:
		c.requestReplace(ctx)
	case *finish:
		c.closing = true
		c.flushOut(ctx)
	case *abort:
		c.forceDestroy(ctx)
	case *rdma.SendFailed:
		if lostFrames(m) {
			c.destroyConn(ctx)
		}
	case *rdma.CommandFailed:
		// Accept, for lack of memory: nothing else answers the client
		c.forceDestroy(ctx)
	case *rdma.Closed:
		c.handleClosed(m.Err)
	case rdma.Failure: // Closed follows
	}
}

// handleRequest answers a client that wants to connect.
func (c *serverConn) handleRequest(ctx actor.Context, m *rdma.ConnectRequest) {
	c.id, c.peer, c.identity, c.tls, c.local = ctx.Sender(), m.Peer, m.Identity, m.TLS, rdma.LocalOf(ctx)
	c.out.sys, c.out.pid = c.s.sys, ctx.Self()
	ours := wire.Hello{Version: wire.HelloVersion, Calls: c.s.cfg.MaxCalls}
	h, ok := wire.ParseHello(m.PrivateData)
	switch {
	case !ok, h.Version != wire.HelloVersion, h.Window == 0:
	case !c.s.addConn(c):
		ours.Calls = 0
	default:
		c.joined = true
		c.share.Join(c.s.shares, m.Peer.Source())
		c.out.purse.Of = &c.share
		c.window, c.version = int64(h.Window)<<10, h.Agreed()
		if c.version >= 2 {
			ours.Latest, ours.Window = c.version, c.s.cfg.StreamWindow>>10
		}
		ctx.Send(c.id, &rdma.Accept{PrivateData: ours.Bytes()})
		return
	}
	ctx.Send(c.id, &rdma.Reject{PrivateData: ours.Bytes()})
}

// handleEstablished begins the calls.
func (c *serverConn) handleEstablished(ctx actor.Context, m *rdma.Established) {
	c.limit = m.MaxMessage
	c.out.mu.Lock()
	c.out.establishedLocked(m.MaxMessage)
	c.out.cuts.on = c.version >= 2
	c.out.mu.Unlock()
	if c.s.draining.Load() {
		c.sendDrain(ctx)
	}
	if age := c.s.cfg.MaxConnectionAge; age > 0 {
		age += time.Duration((c.s.rt.Scheduler().Rand().Float64() - 0.5) / 5 * float64(age))
		c.startTimer(age, &old{})
	}
}

// startTimer sends m to the connection after d.
func (c *serverConn) startTimer(d time.Duration, m any) {
	pid := c.out.pid
	c.timer = c.s.rt.Scheduler().AfterFunc(d, func() { c.s.sys.Root.Send(pid, m) })
}

// requestReplace asks the client to connect again. It is asked again if it could not: with a grace
// in shorter and shorter pauses. In the last sixteenth of the grace the client gets a drain frame,
// so that it sends no calls that the end of the connection would meet.
func (c *serverConn) requestReplace(ctx actor.Context) {
	if c.ending || c.closing || c.s.draining.Load() {
		return
	}
	pause := c.s.cfg.MaxConnectionAge
	if grace := c.s.cfg.MaxConnectionAgeGrace; grace > 0 {
		now := time.Now()
		if c.graceBy.IsZero() {
			c.graceBy = now.Add(grace)
		}
		rest := c.graceBy.Sub(now)
		if rest <= grace/16 {
			c.sendDrain(ctx)
			c.startTimer(rest, &abort{})
			return
		}
		pause = min(pause, rest/4)
	}
	c.out.mu.Lock()
	c.out.putLocked(wire.Header{Type: wire.FrameDrain, Flags: wire.FlagOld}, nil)
	c.out.mu.Unlock()
	c.flushOut(ctx)
	c.startTimer(pause, &old{})
}

// sendDrain notifies the client that no further calls are taken. If it is not established yet, it
// is notified then: it may know already that it is connected, and call.
func (c *serverConn) sendDrain(ctx actor.Context) {
	if c.limit == 0 {
		return
	}
	if !c.closing { // otherwise the last drain frame does
		c.out.mu.Lock()
		c.out.putLocked(wire.Header{Type: wire.FrameDrain}, nil)
		c.out.mu.Unlock()
	}
	c.flushOut(ctx)
}

// putLastDrain puts the last drain frame, if all answers precede it: the client takes the calls
// without one for refused. It reports whether it did. Large answers do not precede it as long as
// they wait in pieces.
func (c *serverConn) putLastDrain() bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.limit == 0 || len(c.out.cuts.all) > 0 {
		return false
	}
	c.out.putLocked(wire.Header{Type: wire.FrameDrain, Flags: wire.FlagLast}, nil)
	return true
}

// handleClosed ends the calls of the connection: the contexts of handlers end, and their answers
// are dropped.
func (c *serverConn) handleClosed(err error) {
	c.ending, c.leaving = true, false // the peer is gone
	if c.timer != nil {
		c.timer.Stop()
	}
	c.out.dropUnsent()
	cause := &Error{Code: CodeUnavailable, Err: err}
	c.out.mu.Lock()
	calls := c.calls
	c.calls = nil
	c.out.mu.Unlock()
	for _, call := range calls {
		if call != nil {
			c.endCall(call, cause)
		}
	}
	c.handOver()
	c.releaseParked()
	c.s.keepCounts(c)
	if c.joined {
		c.share.Leave()
		c.s.removeConn(c)
	}
}

// forceDestroy cuts the connection off, also one that is ending in order.
func (c *serverConn) forceDestroy(ctx actor.Context) {
	c.ending = c.ending && !c.leaving
	c.leaving = false
	c.destroyConn(ctx)
}

// destroyConn cuts the connection off, unless it is ending.
func (c *serverConn) destroyConn(ctx actor.Context) {
	if !c.ending {
		c.ending = true
		ctx.Send(c.id, &rdma.DestroyID{})
	}
}

func (c *serverConn) failViolated(ctx actor.Context, err error) {
	if !c.ending {
		c.destroyConn(ctx)
		c.s.log.Warn("rpc: a client broke the protocol", "peer", c.peer.String(), "err", err)
	}
}

// flushOut sends queued frames, and if the connection is to be closed, closes it after the last
// one.
func (c *serverConn) flushOut(ctx actor.Context) {
	c.out.cuts.blind = c.parked.Len() > 0
	c.out.sendQueued(ctx, c.id)
	c.continueReading(ctx)
}

// continueReading continues after answers were sent: it reads parked messages, or closes the
// connection.
func (c *serverConn) continueReading(ctx actor.Context) {
	if c.parked.Len() > 0 && !c.waits && c.goesOn() && !c.ending {
		c.readOn(ctx, c)
		c.out.sendQueued(ctx, c.id)
	}
	if c.closing && !c.last && !c.ending && c.putLastDrain() {
		c.last = true
		c.releaseParked()
		c.out.sendQueued(ctx, c.id)
	}
	if c.last && !c.ending && c.queuedBytes() == 0 {
		c.ending, c.leaving = true, true
		ctx.Send(c.id, &rdma.Close{})
	}
}

func (c *serverConn) queuedBytes() int {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.out.totalLocked()
}

// goesOn reports whether there is room for further answers, so that parked messages may be read.
func (c *serverConn) goesOn() bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.out.bytes <= highWater/2 && c.out.requestRoomLocked(c.needs)
}

// handleReceived handles a message. If there is no room for its answers now, it is parked, and its
// sender does not get the credit back.
func (c *serverConn) handleReceived(ctx actor.Context, m *rdma.Received) {
	// after the last drain frame the client knows the fate of its calls
	if c.ending || c.last {
		return
	}
	c.takeMessage(ctx, m, c)
	c.flushOut(ctx) // if it hands everything over, no other event resumes reading
}

// readFrames reads a message's frames, up to the first one that has to wait, at most turnBytes.
func (c *serverConn) readFrames(ctx actor.Context) {
	// also what was admitted before a violation, or before a handler that ends the loop
	defer c.handOver()
	defer c.confirmParts()
	defer c.lockForItems(false)
	for all := len(c.rest); len(c.rest) > 0 && all-len(c.rest) < turnBytes && !c.ending; {
		h, body, rest, err := wire.ParseFrame(c.rest)
		c.lockForItems(h.Type == wire.FrameItem && c.version >= 2)
		if err != nil {
			err = malformedError(err)
		} else if h.Type == wire.FrameCall || h.Type == wire.FramePart {
			lets, taken := c.checkRoom(&h, body)
			if !lets {
				break
			}
			if taken {
				err = violationError("call %#x has the place of one that was not answered", h.Call)
			}
		}
		if c.rest = rest; len(rest) > 0 {
			c.arrivalTime() // recorded before a handler on the loop delays it
		}
		if err == nil {
			err = c.handleFrame(h, body)
		}
		if err != nil {
			c.lockForItems(false)
			c.failViolated(ctx, err)
			c.rest = nil
		}
	}
}

// lockForItems locks out.mu before an item, if it is not locked, and unlocks it before any other
// frame: so items that follow each other cost one lock.
func (c *serverConn) lockForItems(item bool) {
	switch {
	case item && !c.locked:
		c.out.mu.Lock()
	case !item && c.locked:
		c.out.mu.Unlock()
	}
	c.locked = item
}

// confirmParts confirms the parts that were read.
func (c *serverConn) confirmParts() {
	if c.unread >= confirmBytes {
		c.out.mu.Lock()
		c.out.confirmLocked(&c.unread)
		c.out.mu.Unlock()
	}
}

// handOver passes the admitted calls to the workers, and wakes the goroutines of streams.
func (c *serverConn) handOver() {
	woke := c.wakes.wakeAll()
	if c.head != nil {
		woke = c.s.workers.addCalls(c.head, c.tail) || woke
		c.head, c.tail = nil, nil
	}
	if woke {
		c.local.Woke()
	}
}

// handleFrame handles one frame.
func (c *serverConn) handleFrame(h wire.Header, body []byte) error {
	switch h.Type {
	case wire.FrameCall:
		return c.handleCall(h, body)
	case wire.FrameCancel:
		return c.handleCancel(h, body)
	case wire.FrameWindow:
		if call := c.findCall(h.Call); call != nil {
			return call.widenWindow(h.Arg)
		}
		return nil
	case wire.FrameDeclare:
		return c.declareMethod(h, body)
	}
	if c.version >= 2 {
		switch h.Type {
		case wire.FrameItem:
			return c.itemLocked(h, body)
		case wire.FrameEnd:
			return c.noItems(h)
		case wire.FrameTaken:
			c.out.mu.Lock()
			defer c.out.mu.Unlock()
			return c.out.takenLocked(int(h.Arg))
		}
	}
	if c.version >= 3 && h.Type == wire.FramePart {
		return c.handlePart(h, body)
	}
	return violationError("a frame of type %d from a client", h.Type)
}

// handleCancel ends the context of a call, for the reason that the client has sent.
func (c *serverConn) handleCancel(h wire.Header, body []byte) error {
	call := c.findCall(h.Call)
	if call == nil {
		return nil
	}
	cause := context.Canceled
	if c.version >= 2 {
		text, _, err := wire.ParseError(body)
		if err != nil {
			return malformedError(err)
		}
		if text != "" {
			cause = &Error{Code: cmp.Or(Code(h.Number), CodeCanceled), Message: text, Method: call.h.m.name, Fate: FateAnswered}
		}
	}
	c.endCall(call, cause)
	return nil
}

func (c *serverConn) declareMethod(h wire.Header, name []byte) error {
	if len(c.methods) == wire.MaxMethods && int(h.Number) >= wire.MaxMethods {
		return nil // its calls are refused: it was not declared
	}
	if int(h.Number) != len(c.methods) {
		return violationError("method %d is declared, want %d", h.Number, len(c.methods))
	}
	if len(name) == 0 || len(name) > wire.MaxMethodName {
		return violationError("a method's name of %d bytes", len(name))
	}
	hd := c.s.handlerOf(string(name))
	c.methods = append(c.methods, hd)
	c.addTally(hd)
	return nil
}

// findCall returns the call that id names, if it was not answered.
func (c *serverConn) findCall(id wire.CallID) *serverCall {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.findLocked(id)
}

// findLocked is findCall with out.mu locked.
func (c *serverConn) findLocked(id wire.CallID) *serverCall {
	if i := id.Slot(); i < len(c.calls) && c.calls[i] != nil && c.calls[i].id == id {
		return c.calls[i]
	}
	return nil // answered since
}
