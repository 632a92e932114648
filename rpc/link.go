package rpc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// link is a connection of a client: the actor that owns its identifier. Only the loop uses its
// fields, except those that out.mu guards.
type link struct {
	table
	rt        *rdma.Runtime
	sys       *actor.ActorSystem
	within    time.Duration // limit for the dial; 0: the runtime's Timeouts
	first     rdma.Addr     // preferred address of the name; zero: the order of the look-up
	cfg       *ClientConfig
	server    *endpoint
	dead      deadLetters
	id        *actor.PID
	report    func()        // called when the dial is over; nil: nobody waits for it
	unwatch   func()        // ends the watch of the server's health; Client.mu
	gone      chan struct{} // closed when the identifier is closed
	local     rdma.Local
	cause     error // why this side ended the connection; nil: it did not
	over      bool  // nothing more is received
	tried     bool  // the dial is over
	finished  bool  // closed was called
	closeSent bool  // Close was sent: the server drains and has answered everything
	unsure    bool  // messages were lost, and it is not known which
	failures  int   // calls that have failed one after the other; out.mu
	used      bool  // the server has answered a call, drains, or has ended the connection politely

	backlog
	ends []any // events of the connection's end, while something is parked
}

// The messages of a Client to its connection.
type (
	dial   struct{}
	hangUp struct{ cause error }
	leave  struct{} // close the connection when its calls are answered
)

// sendToActor sends the actor a message. An actor whose runtime was shut down receives no messages:
// then the message goes to deadLetters, which stops the actor. Any goroutine.
func (l *link) sendToActor(m any) { l.sys.Root.RequestWithCustomSender(l.out.pid, m, l.dead.pid) }

// deadLetters is the process that gets the messages that the actor does not receive.
type deadLetters struct {
	l   *link
	pid *actor.PID
}

func (p *deadLetters) SendUserMessage(*actor.PID, any) { p.l.sys.Root.Stop(p.l.out.pid) }

func (p *deadLetters) SendSystemMessage(*actor.PID, any) {}

func (p *deadLetters) Stop(*actor.PID) {}

// newLink makes a connection to a server, which is to be dialled.
func newLink(e *endpoint) *link {
	c := e.c
	l := &link{rt: c.rt, sys: c.sys, cfg: &c.cfg, server: e, gone: make(chan struct{}), unwatch: func() {}}
	l.ledger = c.ledger
	if c.pool != nil {
		l.latency, l.ended = &latency{}, func(began time.Time, code Code) { e.recordResult(l, began, code) }
	}
	l.open, l.beyond, l.failed = &c.streams, &c.beyond, errors.New("not connected")
	l.out.number, l.out.ahead.Limits = 1, &ahead
	l.out.sys, l.out.trim, l.out.trimLate = l.sys, l.handLocked, l.trimLate
	l.dead.l = l
	l.dead.pid, _ = l.sys.ProcessRegistry.Add(&l.dead, "rpc-dead-letters"+l.sys.ProcessRegistry.NextID())
	return l
}

func (l *link) receiveMessage(ctx actor.Context) {
	m := ctx.Message()
	if l.parked.Len()+len(l.ends) > 0 {
		switch m.(type) {
		case rdma.Failure, *rdma.Closed: // handled after earlier messages were read
			l.ends = append(l.ends, m)
			return
		}
	}
	l.handleMessage(ctx, m)
}

func (l *link) handleMessage(ctx actor.Context, m any) {
	switch m := m.(type) {
	case *rdma.Received:
		l.handleReceived(ctx, m)
	case *resume:
		l.handleResume(ctx)
	case *flush:
		l.flushOut(ctx)
	case *rdma.Sent:
		l.out.ahead.Noticed()
		l.flushOut(ctx)
	case *dial:
		l.local = rdma.LocalOf(ctx)
		if err := l.local.Err(); err != nil { // the actor may receive nothing more, also no Closed
			l.hangUp(ctx, err)
			return
		}
		l.id = l.rt.CreateID(ctx.Self(), idConfig(l.cfg.MaxMessage, l.cfg.Credits))
		h := wire.Hello{Version: wire.HelloVersion, Latest: wire.Latest, Window: l.cfg.StreamWindow >> 10}
		ctx.Send(l.id, &rdma.Dial{Addr: l.server.addr, Timeout: l.within, First: l.first, PrivateData: h.Bytes()})
	case *rdma.Established:
		l.handleEstablished(ctx, m)
	case *rdma.Rejected:
		l.hangUp(ctx, rejectedError(m))
	case *rdma.SendFailed:
		if lostFrames(m) {
			l.unsure = true
			l.hangUp(ctx, m)
		}
	case rdma.Failure: // not every failure ends the identifier
		l.hangUp(ctx, m)
	case *hangUp:
		l.hangUp(ctx, m.cause)
	case *leave:
		l.out.mu.Lock()
		l.draining = true
		l.out.mu.Unlock()
		l.closeIfIdle(ctx)
	case *rdma.Closed:
		l.handleClosed(ctx, m)
	case *actor.Stopped: // follows Closed, or replaces it
		l.handleEnds(ctx)
		l.unsure = true // it is unknown which requests arrived
		l.handleClosed(ctx, &rdma.Closed{Err: cmp.Or(rdma.LocalOf(ctx).Err(), rdma.ErrShutdown)})
	}
}

// rejectedError returns the error for a server's reject.
func rejectedError(m *rdma.Rejected) error {
	h, ok := wire.ParseHello(m.PrivateData)
	switch {
	case !ok && len(bytes.Trim(m.PrivateData, "\x00")) > 0: // InfiniBand pads
		return &Error{Code: CodeForeign, Fate: FateNotSent, Err: m}
	case !ok:
		return m
	case h.Version != wire.HelloVersion:
		return &Error{Code: CodeVersion, Message: fmt.Sprintf("%d, ours is %d", h.Version, wire.HelloVersion), Fate: FateNotSent, Err: m}
	case h.Calls == 0:
		return &Error{Code: CodeDraining, Fate: FateRefused, Err: m}
	}
	return m
}

// handleEstablished begins the calls, if the peer is a server.
func (l *link) handleEstablished(ctx actor.Context, m *rdma.Established) {
	h, ok := wire.ParseHello(m.PrivateData)
	switch {
	case !ok || h.Calls == 0:
		l.hangUp(ctx, &Error{Code: CodeForeign, Fate: FateNotSent})
		return
	case h.Version != wire.HelloVersion:
		l.hangUp(ctx, &Error{Code: CodeVersion, Message: fmt.Sprintf("%d, ours is %d", h.Version, wire.HelloVersion), Fate: FateNotSent})
		return
	}
	l.out.mu.Lock()
	l.limit, l.max, l.peer, l.failed = min(h.Calls, l.cfg.MaxCalls), m.MaxMessage, m.Peer, nil
	l.version, l.window, l.most = h.Agreed(), int64(h.Window)<<10, l.cfg.MaxMessage
	l.identity, l.tls = m.Identity, m.TLS
	l.streams, l.excess = int64(l.cfg.openStreams(l.limit)), int64(l.cfg.Memory/2)
	l.out.establishedLocked(m.MaxMessage)
	l.out.cuts.on = l.version >= 3
	l.out.mu.Unlock()
	l.dialDone(true)
}

// dialDone records the end of the dial, once. up: the connection is there.
func (l *link) dialDone(up bool) {
	if l.tried {
		return
	}
	l.tried = true
	if up {
		l.server.linkUp(l)
	}
	if l.report != nil {
		l.report()
	}
}

// hangUp ends the connection from this side.
func (l *link) hangUp(ctx actor.Context, cause error) {
	if l.over {
		return
	}
	l.over, l.cause = true, cause
	l.releaseParked()
	l.server.moveOn(l, cause)
	l.out.mu.Lock()
	l.failed = cause
	l.out.mu.Unlock()
	if l.id == nil {
		l.handleClosed(ctx, &rdma.Closed{})
		return
	}
	ctx.Send(l.id, &rdma.DestroyID{})
}

// handleClosed fails the calls that have no answer. It does so once.
func (l *link) handleClosed(ctx actor.Context, m *rdma.Closed) {
	if l.finished {
		return
	}
	l.finished, l.over = true, true
	l.releaseParked()
	if l.cause == nil {
		l.cause, l.used = m.Err, l.used || m.Err == nil
	}
	if l.cause == nil {
		l.cause = errors.New("the server has closed the connection")
	}
	l.server.moveOn(l, l.cause)
	handed := l.out.dropUnsent()
	l.out.mu.Lock()
	l.failed = l.cause
	var lost *clientCall
	for i := range l.slots {
		s := &l.slots[i]
		if c := s.call; c != nil {
			c.err = l.endedLocked(c.m, s.requestFate(handed, l.unsure, m))
			l.countLocked(c, c.err.Code)
			c.next, lost = lost, c
		}
		if s.busy {
			l.vacateLocked(i)
		}
		*s = slot{}
	}
	l.out.mu.Unlock()
	l.keepCounts()
	l.finishCalls(lost)
	l.sys.ProcessRegistry.Remove(l.dead.pid)
	l.server.linkGone(l)
	l.dialDone(false)
	close(l.gone)
	ctx.Stop(ctx.Self())
}

// finishCalls notifies the callers of their answers. If the decoding of one answer ends the
// goroutine, the other callers still get theirs.
func (l *link) finishCalls(list *clientCall) {
	defer func() {
		if list != nil {
			l.finishCalls(list)
		}
	}()
	for list != nil {
		c := list
		list = c.next
		c.next = nil
		if len(c.parts.all) == 0 && c.body.retainMessage(l.reading, c.body.b) {
			c.copyReply()
		}
		if c.isLarge() && (c.actor != nil || c.stream != nil) {
			l.rt.Scheduler().Go(c.notifyWaiter)
			continue
		}
		c.notifyWaiter()
	}
}

// handleReceived handles the server's frames.
func (l *link) handleReceived(ctx actor.Context, m *rdma.Received) {
	if l.over {
		return
	}
	l.takeMessage(ctx, m, l)
}

// handleResume reads on, in a turn that was asked for.
func (l *link) handleResume(ctx actor.Context) {
	l.waits = false
	if l.parked.Len() == 0 {
		l.handleEnds(ctx)
		return
	}
	if len(l.ends) > 0 {
		l.requestTurn(ctx)
	}
	l.readOn(ctx, l)
}

// handleEnds handles the events of the connection's end, which waited for parked messages.
func (l *link) handleEnds(ctx actor.Context) {
	ends := l.ends
	l.ends = nil
	for _, m := range ends {
		l.handleMessage(ctx, m)
	}
}

// readFrames reads as many frames of a message as fit in a turn. At its end it gives callers their
// answers: not before, because the decoding for actors is the user's code and may not return.
func (l *link) readFrames(ctx actor.Context) {
	var done, last *clientCall
	var err error
	l.out.mu.Lock()
	for all := len(l.rest); len(l.rest) > 0 && all-len(l.rest) < turnBytes && err == nil; {
		var h wire.Header
		var body []byte
		if h, body, l.rest, err = wire.ParseFrame(l.rest); err != nil {
			err = malformedError(err)
			break
		}
		var c *clientCall
		c, err = l.frameLocked(h, body)
		for ; c != nil; c = c.next {
			if last == nil {
				done = c
			} else {
				last.next = c
			}
			last = c
		}
	}
	l.out.confirmLocked(&l.unread)
	queued := len(l.out.cur)+len(l.out.full) > 0 // also a cancellation
	wake := (queued || l.out.mayPopPieceLocked()) && l.out.wakeLocked()
	l.out.mu.Unlock()
	switch {
	case err != nil:
		l.rest = nil
		l.hangUp(ctx, err)
	case l.draining:
		l.closeIfIdle(ctx)
	}
	if wake {
		l.out.requestFlush()
	}
	if l.wakes.wakeAll() || done != nil {
		l.local.Woke()
	}
	if done != nil {
		l.finishCalls(done)
	}
}

// closeIfIdle closes the connection to a draining server if no call waits for an answer. Otherwise
// connections would pile up at a server that drains forever, or never answers. It is called on the
// loop.
func (l *link) closeIfIdle(ctx actor.Context) {
	l.out.mu.Lock()
	waits := slices.ContainsFunc(l.slots, func(s slot) bool { return s.call != nil })
	l.out.mu.Unlock()
	if !waits && !l.closeSent && !l.over {
		l.closeSent = true
		ctx.Send(l.id, &rdma.Close{})
	}
}

// frameLocked takes one frame, and returns the call that it ends, or a list of calls.
func (l *link) frameLocked(h wire.Header, body []byte) (*clientCall, error) {
	if h.Type == wire.FrameDrain {
		if h.Flags&wire.FlagOld != 0 && l.version >= 2 {
			l.server.replaceLink(l)
			return nil, nil
		}
		l.draining, l.used = true, true
		l.server.moveOn(l, ErrDraining)
		if h.Flags&wire.FlagLast != 0 {
			return l.refusedLocked(), nil
		}
		return nil, nil
	}
	c, err := l.answerLocked(h, body, l.reading)
	l.used = l.used || err == nil && h.Type != wire.FrameError
	return c, err
}

// trimLate is trimLocked for a message that has waited in the connection and is sent now. It is
// called on the loop.
func (l *link) trimLate(b []byte) []byte {
	l.out.mu.Lock()
	b = l.trimLocked(b)
	l.out.mu.Unlock()
	l.finishExpired()
	if l.draining {
		l.out.requestFlush() // after the last call flush closes the connection
	}
	return b
}

// finishExpired finishes the calls that trimLocked did not send because their deadline had passed.
// It is called on the loop.
func (l *link) finishExpired() {
	lost := l.expired
	if l.expired = nil; lost != nil {
		l.finishCalls(lost)
		l.local.Woke()
	}
}

// flushOut sends queued frames. If that drops the last call, and the server drains, it closes the
// connection. It is called on the loop.
func (l *link) flushOut(ctx actor.Context) {
	l.out.sendQueued(ctx, l.id)
	l.finishExpired()
	if l.draining {
		l.closeIfIdle(ctx)
	}
}
