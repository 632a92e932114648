package datapath

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// A peer that is frozen, or whose machine is gone, sends nothing, and no transport notices that
// while this side sends nothing. So a peer that was silent for a while is sent a probe, which it
// answers (docs/wire.md). One that is silent for too long is given up.
//
// A loop looks at its connections at intervals, and silence is counted in looks, not in time. So if
// an actor has blocked the loop for a minute, if the machine was suspended or the clock has jumped,
// that counts as one look without news, and the sockets are read before the next. While messages
// flow keepalive does nothing: a look only compares counts that exist for other reasons.
//
// While a message of the peer's waits here for memory, it is this side that does not read, so the
// peer's silence means nothing. The peer's probes wait behind that message, too. Instead of answers
// it is sent credit updates, even without news in them.
//
// Large transfers take time, and probes and answers wait behind them. So any bytes that arrive are
// a sign of life, and while a probe has not gone out, bytes that the transport sends before it
// count as no silence of the peer (verbs.Mover, and completions).

// looksIdle is how many looks there are in keepalive.idle.
const looksIdle = 3

// Keepalive is when a peer that was not heard is sent a probe, and when it is given up. Zero:
// never.
type Keepalive struct{ idle, gone time.Duration }

func NewKeepalive(idle, gone time.Duration) Keepalive {
	if idle <= 0 {
		return Keepalive{}
	}
	return Keepalive{idle, max(gone, 2*idle)}
}

// unknown means that nothing was noted yet.
const unknown = math.MaxUint64

// ChallengeTime is how long a peer has to answer a challenge.
const ChallengeTime = 2 * time.Second

// challenge is the keepalive of a connection whose peer is challenged. It looks eight times in
// ChallengeTime, which begins with the probe: Challenge skips the idle time.
var challenge = Keepalive{ChallengeTime * looksIdle / 8, ChallengeTime + ChallengeTime*looksIdle/8}

// heartbeat is a connection's part of the keepalive. Only its methods use its fields. The zero
// value is not watched.
type heartbeat struct {
	lookout *Lookout // nil: none
	At      int      // in its conns
	quiet   int      // looks without a sign of the peer
	signs   int      // looks at which the peer's messages waited here
	heard   uint64   // signs at the last look
	moved   uint64   // transfers at the last look
	probe   uint32   // number in flight of the last probe
	Look    uint32   // the last that has seen it

	answered func() // called when the peer answers a challenge; nil: there is none
}

// Lookout looks at the connections of a loop that have the same keepalive. Loop goroutine.
type Lookout struct {
	l     *Loop
	every time.Duration
	gone  int // looks
	Conns []*Conn
	timer *eventloop.Timer
	Look  uint32 // its number
	left  int    // connections that it has not seen
}

// startLooks begins the looks at c, whose heartbeat b is.
func (b *heartbeat) startLooks(c *Conn) {
	if k := c.terms.Keepalive; k.idle != 0 && c.Session.Agreed() {
		b.startAt(c, k)
		if m, ok := c.QP.(verbs.Mover); ok {
			m.Watched()
		}
	}
}

func (b *heartbeat) startAt(c *Conn, k Keepalive) {
	l := c.l
	o := l.Lookouts[k]
	if o == nil {
		every := max(k.idle/looksIdle, 1)
		o = &Lookout{l: l, every: every, gone: int((k.gone + every - 1) / every)}
		o.timer = l.el.NewTimer(o.beginLook)
		l.Lookouts[k] = o
	}
	if len(o.Conns) == 0 {
		o.timer.Reset(o.every)
	}
	*b = heartbeat{lookout: o, At: len(o.Conns), Look: o.Look}
	o.Conns = append(o.Conns, c)
}

// stopLooks ends the looks, if there are any.
func (b *heartbeat) stopLooks() {
	o := b.lookout
	if o == nil {
		return
	}
	b.lookout, b.answered = nil, nil
	last := len(o.Conns) - 1
	moved := o.Conns[last]
	o.Conns[b.At], moved.Beat.At = moved, b.At
	o.Conns[last] = nil
	o.Conns = o.Conns[:last]
	if last == 0 {
		o.Conns = nil
		o.timer.Stop()
	}
}

// Challenge sends the peer a probe now, and gives the peer up if it gives no sign of life within
// ChallengeTime. If it does, answered is called, on the loop. While this side reads
// nothing from the peer, that counts as a sign. False: the peer does not answer probes,
// or is challenged already, or the connection is ending.
func (c *Conn) Challenge(answered func()) (begun bool) {
	if c.state != connOpen || c.end.hasGoodbye() || c.Beat.isChallenged() || !c.Session.Agreed() || c.Session.Goodbye() {
		return false
	}
	c.Beat.challengePeer(c, answered)
	return true
}

func (b *heartbeat) challengePeer(c *Conn, answered func()) {
	b.stopLooks()
	b.startAt(c, challenge)
	b.quiet, b.heard, b.answered = looksIdle-1, b.countSigns(c), answered
	b.lookAt(c)
}

// isChallenged reports whether a challenge is unanswered.
func (b *heartbeat) isChallenged() bool { return b.answered != nil }

// challengeAnswered ends a challenge that the peer has answered.
func (b *heartbeat) challengeAnswered(c *Conn) {
	if answered := b.answered; answered != nil {
		b.stopLooks()
		b.startLooks(c)
		_ = c.l.el.Post(answered) // may panic, and other connections are looked at after this one
	}
}

// beginLook begins a look.
func (o *Lookout) beginLook() {
	o.Look++
	o.left = len(o.Conns)
	_ = o.l.el.Schedule(o) // refused after the loop's end only
}

// Run looks at some connections; sockets are served between its turns. It begins with the last
// connection, so that none is left out when another is removed between turns.
func (o *Lookout) Run(budget int) (more bool) {
	for ; budget > 0 && o.left > 0; budget-- {
		o.left--
		if o.left < len(o.Conns) {
			if c := o.Conns[o.left]; c.Beat.markSeen(o.Look) {
				c.Beat.lookAt(c)
			}
		}
	}
	switch {
	case o.left > 0:
		return true
	case len(o.Conns) > 0:
		o.timer.Reset(o.every)
	}
	return false
}

// LoopName names it in the loop's reports of stalls.
func (o *Lookout) LoopName() string { return "keepalive" }

// markSeen reports whether the look of that number had not seen the connection yet. Now it has.
func (b *heartbeat) markSeen(number uint32) bool {
	seen := b.Look == number
	b.Look = number
	return !seen
}

// lookAt looks at the connection, and sends a probe or ends it if the peer is quiet.
func (b *heartbeat) lookAt(c *Conn) {
	if b.answered == nil {
		c.In.resize.shrinkIfUnused()
	}
	if qp := c.In.qp; qp != nil && qp.Waiting() && !c.end.hasGoodbye() {
		b.quiet = 0
		b.sendSign(c)
		b.challengeAnswered(c)
		return
	}
	if heard := b.countSigns(c); heard != b.heard {
		b.heard, b.quiet = heard, 0
		b.challengeAnswered(c)
		return
	}
	if b.quiet >= looksIdle && b.hasMoved(c) || c.end.hasGoodbye() {
		return
	}
	b.quiet++
	switch {
	case b.quiet >= b.lookout.gone && c.Session.Goodbye():
		c.identifier.BreakOff(nil) // it has announced its end
	case b.quiet >= b.lookout.gone && b.answered != nil:
		c.identifier.BreakOff(&LostError{fmt.Errorf("it has not answered a challenge within %v: %w", ChallengeTime, unix.ETIMEDOUT)})
	case b.quiet >= b.lookout.gone:
		silence := time.Duration(b.quiet) * b.lookout.every
		c.identifier.BreakOff(&LostError{fmt.Errorf("nothing was heard from it for %v, nor an answer to a probe: %w", silence, unix.ETIMEDOUT)})
	case b.quiet >= looksIdle:
		if b.quiet == looksIdle {
			b.moved = unknown
		}
		b.sendProbe(c)
	}
}

// sendSign shows a peer whose messages, and probes, wait here that this side is alive. If something
// is still waiting to leave, the peer takes nothing in. But a Read is not complete because its
// answer waits here, too, and signs complete behind it: these leave half of the send queue free.
func (b *heartbeat) sendSign(c *Conn) {
	b.signs++
	most := 0
	if c.In.fetching > 0 {
		most = c.Out.Flight.Depth/2 - 1
	}
	if b.signs%looksIdle == 0 && c.Out.Flight.Len() <= most {
		c.Out.sendControl(wire.TypeCredit, 0)
	}
}

// countSigns counts the signs of the peer.
func (b *heartbeat) countSigns(c *Conn) uint64 {
	n := c.Session.Signs()
	if c.In.Arrivals != nil {
		n += uint64(c.In.Arrivals.Done)
	}
	if m, ok := c.QP.(verbs.Mover); ok {
		n += m.Came()
	}
	return n
}

// hasMoved reports whether the transport, since the last look, has moved anything that a probe may
// be waiting behind.
func (b *heartbeat) hasMoved(c *Conn) bool {
	var n uint64
	if !c.Session.Probing() || !c.Out.Flight.hasCompleted(b.probe) {
		n = uint64(c.Out.Flight.head)
	}
	if m, ok := c.QP.(verbs.Mover); ok {
		n += m.Went()
	}
	before := b.moved
	b.moved = n
	return before != unknown && before != n
}

// sendProbe asks the peer for a sign, if there is room, and the last time was answered.
func (b *heartbeat) sendProbe(c *Conn) {
	if c.Session.Probing() || c.Session.Goodbye() || !c.Out.Flight.hasRoom() {
		return
	}
	if c.Out.sendControl(wire.TypeProbe, 0) { // else the next look tries again
		b.probe = c.Out.lastNumber()
	}
}
