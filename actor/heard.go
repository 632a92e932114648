package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// heardFirst handles the peer's first message.
func (it *ident) heardFirst() {
	h := it.handshake
	if it.ending() || !h.takeFirst() {
		return
	}
	switch m := h.first; m.typ {
	case wire.TypeAccept:
		h.completed("accepted by the peer")
		h.established.PrivateData = m.body
		it.handshake = nil
		it.opened(h.established, h.answers)
	case wire.TypeReject:
		h.completed("rejected by the peer")
		it.rejectedBy(m.body, fmt.Errorf("rejected: by the application: %w", unix.ECONNREFUSED))
	case wire.TypeRefusal:
		h.completed("refused by the peer")
		it.rejectedBy(nil, sealedRefusalError(m.body))
	case wire.TypeRequest:
		it.introduce()
	}
}

// lostUnheard ends an identifier whose connection has ended, or was broken off, before its owner
// was notified of it. If the peer's last message makes the owner learn of it, the identifier stays.
func (it *ident) lostUnheard(cause error) (ended bool) {
	it.heardFirst()
	if !it.handshake.unheard() {
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
// established. This is no evidence of a wrong key: the connecting side may try again.
func (it *ident) reset(cause error) {
	err := fmt.Errorf("the connection has ended before it was established: %w", unix.ECONNRESET)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	p := it.handshake.answers
	if p == nil { // no command waits: the other side connects
		it.destroy(err)
		return
	}
	ev := &cmid.ConnectError{FailureBase: it.failure(p.Command, opName(p.Command), err)}
	it.answer(p, ev)
	it.failed(ev)
}

func (it *ident) established(ev *cmid.Established, answers *cmid.Pending) {
	switch h := it.handshake; {
	case h == nil:
		it.opened(ev, answers)
	case it.ending():
	case h.in != nil:
		it.admitted(ev, answers)
	default:
		it.replied(ev, answers)
	}
}
