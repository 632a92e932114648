package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// heardFirst handles the peer's first message.
func (it *ident) heardFirst() {
	hand := it.hand
	if hand == nil || hand.came == nil || it.ending() {
		return
	}
	m := hand.came
	hand.came = nil
	switch m.typ {
	case wire.TypeAccept:
		it.completeShake("accepted by the peer")
		ev := hand.established
		ev.PrivateData = m.body
		it.hand = nil
		it.opened(ev, hand.answers)
	case wire.TypeReject:
		it.completeShake("rejected by the peer")
		it.rejectedBy(m.body, fmt.Errorf("rejected: by the application: %w", unix.ECONNREFUSED))
	case wire.TypeRefusal:
		it.completeShake("refused by the peer")
		it.rejectedBy(nil, sealedRefusalError(m.body))
	case wire.TypeRequest:
		hand.first = m.body
		it.introduce()
	}
}

// lostUnheard ends an identifier whose connection has ended, or was broken off, before its owner
// knows of it. Not so if what has come last is the news of it.
func (it *ident) lostUnheard(cause error) (ended bool) {
	it.heardFirst()
	if !it.unheard() {
		return false
	}
	if it.ending() {
		it.goodbyeDone()
		return true
	}
	it.doInner(&cmid.Disconnect{}, nil, func(Event) {})
	if it.conn.BrokenBy() != nil {
		it.destroy(&HandshakeError{What: "the connection has ended before it was established", Err: cause})
	} else {
		it.reset(cause)
	}
	it.goodbyeDone()
	return true
}

// reset ends an identifier whose connection the device or the peer has ended before it was
// established. That says nothing about keys: who connects may try again.
func (it *ident) reset(cause error) {
	err := fmt.Errorf("the connection has ended before it was established: %w", unix.ECONNRESET)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	p := it.hand.answers
	if p == nil { // nobody waits: the other side connects
		it.destroy(err)
		return
	}
	ev := &cmid.ConnectError{FailureBase: it.failure(p.Command, opName(p.Command), err)}
	it.answer(p, ev)
	it.failed(ev)
}

func (it *ident) established(ev *cmid.Established, answers *cmid.Pending) {
	switch hand := it.hand; {
	case it.ending() && hand != nil:
		return
	case hand != nil && hand.in != nil:
		it.admitted(ev, answers)
		return
	case hand != nil:
		it.replied(ev, answers)
		return
	}
	it.opened(ev, answers)
}
