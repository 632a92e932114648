package reconnect

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// link is the reconnecting actor. One generation is one identifier: a Dial, and the connection if
// it succeeds.
type link struct {
	rt    *rdma.Runtime
	cfg   Config
	owner *actor.PID
	local rdma.Local
	relay *rdma.Relay

	state      LinkState // set by enterState
	since      time.Time // in state
	status     *status   // the part that Links shows
	generation uint64
	id         *actor.PID // the generation's identifier; nil: none
	self       *actor.PID
	ticket     *Ticket   // for dials to at; nil: none so far
	at         string    // the address to dial: Dial.Addr, or its resolution
	dialling   bool      // it has a place at the Limiter
	dialSince  time.Time // of the last dial
	asking     func()    // cancels the call of Resolve in progress; nil: none
	delivering bool      // the connection is in the middle of reporting something
	timer      func()    // stops it; nil: none
	stopGiveUp func()    // stops the timer of GiveUp; nil: none
	downSince  time.Time // also before the first connection
	upSince    time.Time
	failed     int       // attempts in a row
	pauses     int       // since the last stable connection
	failure    error     // of the last attempt; nil: none since it was up
	lastErr    error     // why the last generation ended
	nextTry    time.Time // when the pause is over
	cause      error     // why it ended
	fates      []Fate    // of the messages that waited at the end
	panicked   any       // why it is restarted
	over       bool      // the runtime is being shut down
	left       func()    // lets the runtime's Shutdown continue
	orphan     bool      // the owner has stopped: no more notifications
	reported   bool      // Closed was delivered

	closing   bool      // no more messages are accepted
	redial    bool      // it connects again to send the accepted messages: Drain
	closeSent bool      // the identifier has got its Close
	deadline  time.Time // of closing
	release   func() bool

	worked rdma.Addr  // the address that the last dial has connected to; zero: none
	home   netip.Addr // the address of the peer's node; zero: not known yet
	// the hello of the last connection's peer
	peer   hello
	peerAt netip.Addr // that peer's address
	user   []byte     // its private data, with its request

	challenger *challenger // waits for the answer to a challenge; nil: none
	challenged time.Time   // when the last challenge began

	out outbox
}

// The messages of a link to itself.
type (
	turn     struct{}                    // the Limiter may have a turn for it
	retry    struct{ generation uint64 } // the pause after it is over
	flush    struct{}                    // Established was delivered: messages may be sent
	tooLong  struct{ since time.Time }   // without a connection
	overdue  struct{}                    // the deadline of closing
	canceled struct{ cause error }
	shutdown struct{} // the runtime's has begun
)

// dialInTurn begins a generation when it is this link's turn.
func (l *link) dialInTurn(ctx actor.Context) {
	l.enterState(LinkQueueing)
	l.stopTimer()
	ok, after := l.ticket.Enter(l.local.Now())
	if !ok {
		if after > 0 {
			l.timer = rdma.After(ctx, after, &turn{})
		}
		return
	}
	l.generation++
	l.dialling, l.dialSince = true, l.local.Now()
	l.enterState(LinkDialling)
	id := l.cfg.ID
	if l.cfg.Peers != nil {
		id.Hint = nodeHint(l.cfg.Peers.cfg.Node)
	}
	l.id = l.rt.CreateID(ctx.Self(), id)
	d := l.cfg.Dial
	d.Addr, d.Name, d.First = l.at, cmp.Or(d.Name, d.Addr), cmp.Or(l.worked, d.First)
	if l.cfg.Peers != nil {
		l.cfg.Peers.dials.Add(1)
		d.PrivateData = l.cfg.Peers.newHello(helloRequest).encodeWith(d.PrivateData)
	}
	ctx.Request(l.id, &d)
}

// returnTicket returns the place to the Limiter.
func (l *link) returnTicket() {
	if l.dialling {
		l.dialling = false
		l.ticket.Done()
	}
}

// handleEstablished handles the connection of the generation. Messages are not sent here but in
// flush, because the identifier is still delivering Established.
func (l *link) handleEstablished(ctx actor.Context, ev *rdma.Established) {
	l.returnTicket()
	accepted := l.state == LinkAccepting
	if l.cfg.Peers != nil {
		if err := l.checkPeer(ev); err != nil {
			l.failGeneration(ctx, err, nil)
			return
		}
	}
	line, ok := l.local.Line(ev.ID)
	if !ok {
		l.closeNow(ctx, fmt.Errorf("%v: no data path on this loop: %w", ev, unix.EINVAL))
		return
	}
	if !accepted {
		l.worked = ev.Peer
	}
	l.upSince, l.failed, l.failure, l.closeSent = l.local.Now(), 0, nil, false
	l.enterState(LinkUp)
	large := l.out.beginGeneration(line, ev.MaxMessage)
	up := &Up{Generation: l.generation, Accepted: accepted, Established: ev, Node: l.peer.node, Incarnation: l.peer.incarnation}
	if l.relay.Near() {
		up.link = l
	}
	l.notifyOwner(up)
	for _, m := range large {
		l.refuseMessage(m, tooLarge(m.send, ev.MaxMessage))
	}
	ctx.Send(ctx.Self(), &flush{})
}

// recordLoss records the time of the loss, and whether the last connection has worked. err is why
// it ended.
func (l *link) recordLoss(ctx actor.Context, err error) {
	l.downSince = l.local.Now()
	if l.state == LinkUp && l.cfg.Backoff.Restarts(l.downSince.Sub(l.upSince), err == nil || l.out.hasDelivered()) {
		l.pauses = 0
	}
	if l.stopGiveUp != nil {
		l.stopGiveUp()
	}
	if d := l.giveUp(); d > 0 {
		l.stopGiveUp = rdma.After(ctx, d, &tooLong{l.downSince})
	}
}

// gaveUp returns the error when GiveUp is over. There may have been no attempt since the last
// connection.
func (l *link) gaveUp() error {
	if l.failure == nil {
		return fmt.Errorf("%w after %v, before another attempt", ErrGaveUp, l.giveUp())
	}
	return fmt.Errorf("%w after %v: %w", ErrGaveUp, l.giveUp(), l.failure)
}

// failGeneration ends the generation, and decides how to proceed. f is the event by which a dial
// has failed. nil: the generation has ended otherwise.
func (l *link) failGeneration(ctx actor.Context, err error, f rdma.Failure) {
	now := l.local.Now()
	err = l.challengeError(err)
	reason := l.rejectReason(f)
	if reason != nil {
		err = fmt.Errorf("%w: %w", reason, err)
	}
	if l.state == LinkUp {
		l.recordLoss(ctx, err)
	} else {
		l.failure = err
	}
	switch {
	case reason != nil: // the peer's node has answered: that is no failed attempt
		f = nil
	case l.state != LinkUp && l.state != LinkAccepting: // a peer's dial is no attempt
		l.failed++
	}
	switch {
	case l.closing && (!l.redial || !l.out.wouldRepeat(l.cfg.FailFast)):
		l.closeNow(ctx, err)
		return
	case l.over && errors.Is(err, l.local.Err()):
		l.closeNow(ctx, err)
		return
	case l.over:
		l.closeNow(ctx, fmt.Errorf("%w: %w", l.local.Err(), cmp.Or(err, ErrClosing)))
		return
	case f != nil && l.cfg.Permanent(f):
		l.closeNow(ctx, fmt.Errorf("%w: %w", ErrPermanent, err))
		return
	case l.cfg.Attempts > 0 && l.failed >= l.cfg.Attempts:
		l.closeNow(ctx, fmt.Errorf("%w after %d attempts: %w", ErrGaveUp, l.failed, err))
		return
	}
	wait := l.nextPause()
	if errors.Is(reason, ErrSimultaneous) {
		wait += dialStands
	}
	if l.state == LinkAccepting {
		l.pauses-- // nor does it lengthen later pauses
	}
	if l.challenger != nil {
		l.endGeneration(ctx, err, now, thenAccept)
		l.acceptChallenger(ctx)
		return
	}
	l.endGeneration(ctx, err, now.Add(wait), thenPause)
	l.timer = rdma.After(ctx, wait, &retry{l.generation})
}

// nextPause returns how long to wait before the next attempt.
func (l *link) nextPause() time.Duration {
	most := int64(l.cfg.Backoff.Longest(l.pauses)) + 1
	l.pauses++
	if l.cfg.Rand != nil {
		return time.Duration(l.cfg.Rand.Int64N(most))
	}
	return time.Duration(l.rt.Scheduler().Rand().Int64N(most))
}

// sequel is the step after a generation.
type sequel uint8

const (
	thenPause  sequel = iota // a pause, and another attempt
	thenAccept               // a request of the peer, which is accepted
	thenEnd                  // nothing
)

// endGeneration ends the generation: events of its identifier are ignored from now on.
func (l *link) endGeneration(ctx actor.Context, err error, next time.Time, then sequel) {
	l.returnTicket()
	if l.id != nil {
		ctx.Send(l.id, &rdma.DestroyID{}) // if it is ending already, this does nothing
		l.id = nil
	}
	d := &Down{Generation: l.generation, WasUp: l.state == LinkUp, Err: err, NextTry: next, Accepting: then == thenAccept}
	if d.WasUp || then == thenEnd {
		d.Fates, d.Counts = l.out.endGeneration(l.cfg.FailFast || then == thenEnd)
	}
	d.Waiting = l.out.len()
	l.lastErr, l.nextTry = err, next
	l.enterState(LinkPausing)
	l.notifyOwner(d)
}

// leaveQueue ends the pause, or the wait for a turn at the Limiter.
func (l *link) leaveQueue() {
	l.stopTimer()
	if l.ticket != nil {
		l.ticket.Leave()
	}
}

func (l *link) stopTimer() {
	if l.timer != nil {
		l.timer()
		l.timer = nil
	}
}

// closeNow ends everything now. Messages in the mailbox are refused before Closed is delivered.
func (l *link) closeNow(ctx actor.Context, err error) {
	if l.state == LinkEnded {
		return
	}
	switch l.state {
	case LinkDialling, LinkAccepting, LinkUp:
		l.endGeneration(ctx, err, time.Time{}, thenEnd)
	default:
		l.fates, _ = l.out.endGeneration(true)
	}
	l.leaveQueue()
	l.rejectChallenger(ctx)
	l.closing, l.cause, l.lastErr = true, err, err
	l.enterState(LinkEnded)
	if l.release != nil {
		l.release()
	}
	if l.stopGiveUp != nil {
		l.stopGiveUp() // its timer would keep the link in memory until then
	}
	if l.asking != nil {
		l.asking()
	}
	if p := l.cfg.Peers; p != nil {
		p.removeLink(l.cfg.Peer, ctx.Self())
	}
	l.local.Unwatch(ctx, l.owner)
	ctx.Poison(ctx.Self())
}

// reportClosed delivers the last message, once.
func (l *link) reportClosed() {
	if !l.reported {
		l.reported = true
		rosterOf(l.rt).leave(l.status)
		l.notifyOwner(&Closed{Err: l.cause, Fates: l.fates, Counts: l.out.total})
		l.left()
	}
}

// notifyOwner sends msg to the owner.
func (l *link) notifyOwner(msg any) {
	if !l.orphan {
		l.relay.Send(msg)
	}
}

// refuseMessage reports that a message was not accepted.
func (l *link) refuseMessage(m message, err error) {
	r := &Refused{Tag: m.tag, Err: err}
	if m.send != nil {
		r.Bytes = m.send.Len()
	}
	l.notifyOwner(r)
}

func tooLarge(s *rdma.Send, most int) error {
	return fmt.Errorf("%d bytes, and at most %d can be sent (the peer's IDConfig.MaxMessage): %w (%w)", s.Len(), most, rdma.ErrTooLarge, unix.EMSGSIZE)
}
