package datapath

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
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

// watch begins the looks at c.
func (l *Loop) watch(c *Conn) {
	if k := c.terms.Keepalive; k.idle != 0 && c.Session.Courteous() {
		l.watchAt(c, k)
		if m, ok := c.QP.(verbs.Mover); ok {
			m.Watched()
		}
	}
}

func (l *Loop) watchAt(c *Conn, k Keepalive) {
	o := l.Lookouts[k]
	if o == nil {
		every := max(k.idle/looksIdle, 1)
		o = &Lookout{l: l, every: every, gone: int((k.gone + every - 1) / every)}
		o.timer = l.el.NewTimer(o.begin)
		l.Lookouts[k] = o
	}
	if len(o.Conns) == 0 {
		o.timer.Reset(o.every)
	}
	c.Beat = heartbeat{lookout: o, At: len(o.Conns), Look: o.Look}
	o.Conns = append(o.Conns, c)
}

// unwatch ends what watch has begun.
func (c *Conn) unwatch() {
	o := c.Beat.lookout
	if o == nil {
		return
	}
	c.Beat.lookout, c.Beat.answered = nil, nil
	last := len(o.Conns) - 1
	moved := o.Conns[last]
	o.Conns[c.Beat.At], moved.Beat.At = moved, c.Beat.At
	o.Conns[last] = nil
	o.Conns = o.Conns[:last]
	if last == 0 {
		o.Conns = nil
		o.timer.Stop()
	}
}

// Challenge sends the peer a probe now, and gives the peer up if it gives no sign of life within
// ChallengeTime. If it does, answered is called, on the loop. While this side does not read
// what the peer sends, that counts as a sign. False: the peer does not answer probes,
// or is challenged already, or the connection is ending.
func (c *Conn) Challenge(answered func()) (begun bool) {
	if c.state != connOpen || c.goodbye != goodbyeUnsaid || c.Beat.answered != nil || !c.Session.Courteous() || c.Session.Goodbye() {
		return false
	}
	c.unwatch()
	c.l.watchAt(c, challenge)
	b := &c.Beat
	b.quiet, b.heard, b.answered = looksIdle-1, c.heard(), answered
	c.lookAfter()
	return true
}

// vouch ends a challenge that the peer has answered.
func (c *Conn) vouch() {
	if answered := c.Beat.answered; answered != nil {
		c.unwatch()
		c.l.watch(c)
		_ = c.l.el.Post(answered) // may panic, and other connections are looked at after this one
	}
}

// begin begins a look.
func (o *Lookout) begin() {
	o.Look++
	o.left = len(o.Conns)
	_ = o.l.el.Schedule(o) // refused after the loop's end only
}

// Run looks at some connections; sockets are served between its turns. It begins with the last
// connection, so that none is left out when another is removed meanwhile.
func (o *Lookout) Run(budget int) (more bool) {
	for ; budget > 0 && o.left > 0; budget-- {
		o.left--
		if o.left < len(o.Conns) {
			if c := o.Conns[o.left]; c.Beat.Look != o.Look {
				c.Beat.Look = o.Look
				c.lookAfter()
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

// lookAfter is a look at one connection.
func (c *Conn) lookAfter() {
	b := &c.Beat
	if b.answered == nil {
		c.rest()
	}
	if qp := c.recv.qp; qp != nil && qp.Waiting() && c.goodbye == goodbyeUnsaid {
		b.quiet = 0
		c.sign()
		c.vouch()
		return
	}
	if heard := c.heard(); heard != b.heard {
		b.heard, b.quiet = heard, 0
		c.vouch()
		return
	}
	if b.quiet >= looksIdle && c.moves() || c.goodbye != goodbyeUnsaid {
		return
	}
	b.quiet++
	switch {
	case b.quiet >= b.lookout.gone && c.Session.Goodbye():
		c.up.BreakOff(nil) // it has gone, as it said
	case b.quiet >= b.lookout.gone && b.answered != nil:
		c.up.BreakOff(&LostError{fmt.Errorf("it has not answered a challenge within %v: %w", ChallengeTime, unix.ETIMEDOUT)})
	case b.quiet >= b.lookout.gone:
		silence := time.Duration(b.quiet) * b.lookout.every
		c.up.BreakOff(&LostError{fmt.Errorf("nothing was heard from it for %v, nor an answer to a probe: %w", silence, unix.ETIMEDOUT)})
	case b.quiet >= looksIdle:
		if b.quiet == looksIdle {
			b.moved = unknown
		}
		c.probe()
	}
}

// sign shows a peer whose messages, and probes, wait here that this side is alive. If something is
// still waiting to leave, the peer takes nothing in. But a Read is not complete because its answer
// waits here, too, and signs complete behind it: these leave half of the send queue free.
func (c *Conn) sign() {
	b := &c.Beat
	b.signs++
	most := 0
	if c.recv.fetching > 0 {
		most = c.Depth/2 - 1
	}
	if b.signs%looksIdle == 0 && c.Flight.Len() <= most {
		c.say(wire.TypeCredit, 0)
	}
}

// heard counts the signs of the peer.
func (c *Conn) heard() uint64 {
	n := c.Session.Signs()
	if c.Arrivals != nil {
		n += uint64(c.Arrivals.Done)
	}
	if m, ok := c.QP.(verbs.Mover); ok {
		n += m.Came()
	}
	return n
}

// moves reports whether the transport, since the last look, has moved anything that a probe may be
// waiting behind.
func (c *Conn) moves() bool {
	var n uint64
	if !c.Session.Probing() || int32(c.Flight.head-c.Beat.probe) <= 0 {
		n = uint64(c.Flight.head)
	}
	if m, ok := c.QP.(verbs.Mover); ok {
		n += m.Went()
	}
	before := c.Beat.moved
	c.Beat.moved = n
	return before != unknown && before != n
}

// probe asks the peer for a sign, if there is room, and the last time was answered.
func (c *Conn) probe() {
	if c.Session.Probing() || c.Session.Goodbye() || c.Flight.Len() >= c.Depth {
		return
	}
	if c.say(wire.TypeProbe, 0) { // else the next look tries again
		c.Beat.probe = c.last()
	}
}
