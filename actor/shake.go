package actor

import (
	"errors"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// beginShake begins a handshake, and counts it. If an earlier one is under way, its connection did
// not come about.
func (it *ident) beginShake(hand *handshake, of *Handshakes, step string) {
	it.failShake(FailedLost, nil)
	it.hand = hand
	hand.counts = of
	of.Begun++
	it.note(FlightHandshake, step, 0)
}

// shaking returns where the handshake counts; nil: none is under way.
func (it *ident) shaking() *Handshakes {
	if it.hand == nil {
		return nil
	}
	return it.hand.counts
}

// shakeStep records how far the handshake is.
func (it *ident) shakeStep(what string) {
	if it.shaking() != nil {
		it.note(FlightHandshake, what, 0)
	}
}

// completeShake ends it well.
func (it *ident) completeShake(what string) {
	it.shakeStep(what)
	if of := it.shaking(); of != nil {
		it.hand.counts = nil
		of.Completed++
	}
}

// failShake ends it otherwise, if it has not ended.
func (it *ident) failShake(why HandshakeFailure, err error) {
	if of := it.shaking(); of != nil {
		it.hand.counts = nil
		of.Failed[why]++
		it.note(FlightHandshake, handshakeNotes[why], errnoOf(err))
	}
}

// neverShake counts a request that is refused at once.
func (l *loop) neverShake(why HandshakeFailure, id uint64) {
	l.secured.Answered.Begun++
	l.secured.Answered.Failed[why]++
	l.flight.Note(l.el.Now(), id, FlightHandshake, handshakeNotes[why], 0)
}

// countBroken counts a connection that this side has broken off for its records. What breaks a
// handshake is counted there.
func (it *ident) countBroken(err error) {
	var (
		tampered *TamperedError
		overused *secure.LimitError
	)
	switch {
	case it.shaking() != nil:
		it.failShake(failureOf(err), err)
	case errors.As(err, &tampered):
		it.l.secured.Tampered++
	case errors.As(err, &overused):
		it.l.secured.Overused++
	}
}

// add adds a connection's key updates.
func (t *SecurityTotals) add(it *ident) {
	if c := it.conn; c != nil {
		own, peers := c.KeyUpdates()
		t.KeyUpdates += own
		t.PeerKeyUpdates += peers
	}
}
