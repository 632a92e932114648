package datapath

import (
	"container/heap"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/verbs"
)

// On a device that asks for receives, the connections of a loop share the memory that is received
// into. A message for which there is none waits at its sender, because the device does not read
// that connection until then. No peer is trusted, and none can make another's connection end or
// stop for lack of memory:
//
//   - Floor: a connection whose owner holds none of its messages may receive the next. Half of the
//     memory is reserved for that, which at the defaults is enough for 4,092 connections with one
//     message of 64 KiB each. When half of the reserve would be needed, new connections ask for
//     smaller messages (eagerCrowded), so that it is enough for 34,000. Peers that cannot be asked
//     are rejected then (noRoom). All peers are rejected when messages of connections that have
//     ended hold so much that nothing would be left for the existing ones (isFull).
//   - Share: a connection whose owner holds messages may receive while these are no more than what
//     is left for all others, without that half. So one whose owner consumes nothing gets half of
//     the rest, two get a third each, a thousand a thousandth each.
//   - Copies: from when a quarter is in use on, a message that is no larger than half its receive
//     is copied out of it, into memory of the message's size. A message of a byte then costs
//     memory.CopyCost and a byte, not a receive.
//   - Bound: all that owners have is never more than half of Limits.ReceiveMemory, or less where
//     large messages hold more than the other half (budget). Connections that may receive and
//     find no memory wait in a queue.
//
// A connection without credits (raw, or a foreign peer's) has a window besides, as on other
// devices: IDConfig.Credits messages. A connection that must be read so that it can go on is
// stopped at the reserve, not at its share. That is one with a Read in flight, whose answer may
// come behind a message, and one that waits for credits because it has something to send or is
// being closed. While its owner has nothing, because all that has come waits behind a large message
// that is being read, it may have of the reserve, too (behindReserve).

// reservedBytes returns the bytes kept for connections whose owners hold nothing.
func (s *shares) reservedBytes() int { return max(s.limit/4, s.Owed) + s.behindReserve() }

// behindReserve returns the part of the reserve for messages that wait behind a large one. Each may
// receive while at least as much of it is free as the connection has itself. A sixteenth of the
// memory is always enough.
func (s *shares) behindReserve() int { return s.limit / 4 }

// isCrowded reports whether there are so many connections that further ones are to get small
// receives.
func (s *shares) isCrowded() bool { return s.Floor > s.limit/4 }

// isFull reports whether the messages of a further connection would take memory from the existing
// ones. Owners may hold messages of any number of connections that have ended, and their peers may
// return.
func (s *shares) isFull() bool { return s.freeBytes()-s.Owed < s.limit/16 }

// countConn counts a connection, with the memory that it needs to receive a message. uncountConn
// is its counterpart.
func (s *shares) countConn(c *Conn) {
	qp, ok := c.QP.(verbs.Pauser)
	if c.In.pool.srq == nil || !ok {
		return
	}
	c.In.qp, c.In.counted = qp, true
	s.Floor += c.In.pool.Arena.Size()
	s.Owed += c.In.pool.Arena.Size()
}

func (s *shares) uncountConn(c *Conn) {
	if !c.In.counted {
		return
	}
	s.clearPaused(c)
	c.In.counted = false
	s.Floor -= c.In.pool.Arena.Size()
	if c.In.bytes == 0 {
		s.Owed -= c.In.pool.Arena.Size()
	}
	s.scheduleResume()
}

// unreservedBytes returns the free memory without the reserve.
func (s *shares) unreservedBytes() int { return s.freeBytes() - s.reservedBytes() }

func (s *shares) heldBytes() int { return s.Held }

func (s *shares) freeBytes() int { return min(s.limit, s.l.RecvBudget.Total()-s.large) - s.Held }

// isShort reports whether messages are to be copied out of receives that are too large for them.
func (s *shares) isShort() bool { return s.Held > s.limit/4 }

// mayReceive reports whether c may receive another message.
func (s *shares) mayReceive(c *Conn) bool {
	wants, ever := s.neededRoom(c)
	return ever && wants <= s.unreservedBytes()
}

// neededRoom returns the room that there has to be for c to receive another message. Not ever: more
// memory does not help it; resumeOrWait is called when something else has happened.
func (s *shares) neededRoom(c *Conn) (bytes int, ever bool) {
	r := &c.In
	must := c.In.mustReceive()
	switch {
	case r.bytes == 0:
		return math.MinInt, true
	case c.terms.Mode != ModeMessages && r.messages >= c.In.messageWindow(must):
		return 0, false
	case must && c.In.ownerHoldsNone():
		return min(r.bytes, s.limit/16) - s.behindReserve(), true
	case must:
		return 1, true
	}
	return r.bytes, true
}

// countReceived counts what was received into b: so many messages, which cost memory besides their
// bytes.
func (s *shares) countReceived(c *Conn, b *memory.Chunk, messages int) {
	if b == nil || b.Counted > 0 {
		return
	}
	n := max(b.Size(), messages*memory.CopyCost)
	b.Counted = n
	if c.In.counted && c.In.bytes == 0 {
		s.Owed -= c.In.pool.Arena.Size()
	}
	if c.In.qp != nil {
		s.Held += n
	}
	c.In.bytes += n
	c.In.messages++
}

// countReturned counts a message that the owner has returned.
func (s *shares) countReturned(c *Conn, b *memory.Chunk) {
	if n := b.Counted; n > 0 {
		b.Counted = 0
		if c.In.qp != nil {
			s.Held -= n
			s.l.RecvBudget.Fewer()
		}
		c.In.person.returnReceive(s.l, n, c.state == connReleased)
		c.In.bytes -= n
		c.In.messages--
		if c.In.counted && c.In.bytes == 0 {
			s.Owed += c.In.pool.Arena.Size()
		}
	} else if b.Large() {
		c.In.person.returnLarge(s.l, b.Size())
		s.large -= b.Size()
	}
	s.resumeOrWait(c)
	s.scheduleResume()
}

// pauseIfOver pauses c if it may not receive another message. If it is paused, what it waits for
// may have changed.
func (s *shares) pauseIfOver(c *Conn) {
	switch {
	case c.In.qp == nil || c.Over():
	case c.In.paused:
		s.resumeOrWait(c)
	case !s.mayReceive(c):
		s.pauseConn(c)
	}
}

// checkPosting pauses c if it may not get n bytes for a message that finds no receive. Messages
// before Established are not seen, and so not counted, before that.
func (s *shares) checkPosting(c *Conn, n int) {
	s.pauseIfOver(c)
	if c.state != connConnecting {
		return
	}
	if c.In.early += n; c.In.early > n && c.In.early > s.unreservedBytes() {
		s.pauseConn(c)
	}
}

// noteStarved notes that a message may come in for which p has no memory.
func (s *shares) noteStarved(p *recvPool, err error) {
	if !slices.Contains(s.starved, p) {
		s.starved = append(s.starved, p)
	}
	if now := s.l.el.Now(); now.Sub(s.warned) > time.Minute {
		s.warned = now
		s.l.log.Warn("rdma: no memory to receive into: messages wait at their senders", "device", p.d.Verbs.Name(), "bytes", s.Held,
			"limit", s.limit, "err", err)
	}
	if !errors.Is(err, memory.ErrBudget) { // the device does not report when it has memory again
		s.l.el.AfterFunc(RetryAfter, s.scheduleResume)
	}
}

// scheduleResume notes that there may be memory for the waiting connections.
func (s *shares) scheduleResume() {
	if s.queued || len(s.starved) == 0 && !s.canResumeNext() {
		return
	}
	s.queued = true
	_ = s.l.el.Schedule(s) // refused after the loop's end only: no connection waits then
}

// Run resumes paused connections that may go on, a few in a turn, because their messages may leave
// no memory for the others.
func (s *shares) Run(budget int) (more bool) {
	for ; budget > 0 && s.canResumeNext(); budget-- {
		s.resumeOrWait(s.paused[0])
	}
	starved := s.starved
	s.starved = nil
	for _, p := range starved {
		p.postForWaiting()
	}
	s.queued = s.canResumeNext()
	return s.queued
}

// LoopName names it in the loop's reports of stalls.
func (s *shares) LoopName() string { return "memory to receive into" }

// countFetching counts a Read or an atomic operation that has begun (1) or ended (-1). Its answer
// may be behind a message.
func (in *intake) countFetching(o *OneSided, n int) {
	if o.Op != verbs.Read && !o.Op.Atomic() {
		return
	}
	in.fetching += int32(n)
	in.c.l.Shares.resumeOrWait(in.c)
}

// postForWaiting posts a receive for a message that waits, if there is memory for one by now.
func (p *recvPool) postForWaiting() {
	if p.srq == nil {
		return
	}
	c, err := p.Arena.Get()
	if err != nil {
		p.d.l.Shares.noteStarved(p, err)
		return
	}
	if p.postReceive(p.srq, c) != nil {
		c.Free()
	}
}

func (p pausedConns) Len() int { return len(p) }

func (p pausedConns) Less(i, j int) bool { return p[i].In.wants < p[j].In.wants }

func (p pausedConns) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].In.at, p[j].In.at = i, j
}

// Push adds a *conn at the end.
func (p *pausedConns) Push(c any) {
	c.(*Conn).In.at = len(*p)
	*p = append(*p, c.(*Conn))
}

// Pop takes the last.
func (p *pausedConns) Pop() any {
	last := len(*p) - 1
	c := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	return c
}

// canResumeNext reports whether there is room for a connection that is paused.
func (s *shares) canResumeNext() bool {
	return len(s.paused) > 0 && s.paused[0].In.wants <= s.unreservedBytes()
}

// resumeOrWait resumes c if it is paused and may receive. Otherwise it waits in its place.
func (s *shares) resumeOrWait(c *Conn) {
	r := &c.In
	if !r.paused {
		return
	}
	wants, ever := s.neededRoom(c)
	switch {
	case !ever || !c.Flows():
		s.unlistConn(c)
	case wants <= s.unreservedBytes() && c.In.halfFull():
		s.unlistConn(c)
		c.In.reliefCheck()
	case wants <= s.unreservedBytes():
		s.resumeConn(c)
	case r.listed:
		r.wants = wants
		heap.Fix(&s.paused, r.at)
	default:
		r.wants, r.listed = wants, true
		heap.Push(&s.paused, c)
	}
}

// pauseConn pauses c: its messages wait at their sender. It was just found that it may not receive
// another.
func (s *shares) pauseConn(c *Conn) {
	r := &c.In
	if r.paused {
		return
	}
	r.paused = true
	r.qp.Pause(true)
	s.resumeOrWait(c)
}

// resumeConn resumes c: its messages come again.
func (s *shares) resumeConn(c *Conn) {
	s.clearPaused(c)
	if !c.Over() {
		c.In.qp.Pause(false)
	}
}

// clearPaused removes c from the paused connections, also when it ends.
func (s *shares) clearPaused(c *Conn) {
	c.In.paused = false
	s.unlistConn(c)
}

func (s *shares) unlistConn(c *Conn) {
	if c.In.listed {
		c.In.listed = false
		heap.Remove(&s.paused, c.In.at)
	}
}

// awaitsCredits reports whether news of the peer's credits can lead to anything.
func (out *sending) awaitsCredits() bool {
	return out.queue.hasWaiting() || out.queue.refused || out.owesCredit() || out.c.Closing()
}

// mustReceive reports whether the progress of c may be behind its peer's messages: also the Reads
// of offered messages.
func (in *intake) mustReceive() bool {
	return in.fetching > 0 || in.c.Closing() || in.c.terms.Mode == ModeMessages && (in.c.Out.awaitsCredits() || in.c.Out.offers.hasUnread())
}

// ownerHoldsNone reports whether the owner has no message of c's: all that have come wait here.
func (in *intake) ownerHoldsNone() bool {
	return in.c.terms.Mode == ModeMessages && in.Arrivals != nil && in.c.Session.Unfreed() == in.Arrivals.Waiting.Len()
}

// halfFull reports whether more than half of the window of a peer without credits is in use. Such a
// peer does not go on immediately (relief.go), unless it must.
func (in *intake) halfFull() bool {
	return in.c.terms.Mode != ModeMessages && !in.mustReceive() && in.messages > in.messageWindow(false)/2
}

// messageWindow returns how many messages of a peer without credits the owner may hold.
func (in *intake) messageWindow(must bool) int {
	if must {
		return 2 * in.c.Session.Granted()
	}
	return in.c.Session.Granted()
}
