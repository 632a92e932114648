package actor

import (
	"errors"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/states"
)

// BreakOff ends a connection from this side. Nothing is sent or delivered afterwards. The rest
// follows in a separate turn, because the caller may be the connection, which the rest releases.
// Loop goroutine, at any time. Only the first call counts.
func (it *ident) BreakOff(err error) {
	c := it.conn
	if c == nil || c.Over() {
		return
	}
	it.log.Warn("rdma: connection broken off", it.logKeys(states.OpDisconnect, "err", Brief(err))...)
	c.BreakDown(err)
	it.note(FlightEnd, "broken off", errnoOf(err))
	it.countBroken(err)
	var wrong *ProtocolError
	if errors.As(err, &wrong) {
		it.l.dump(FlightEnd, "protocol violation of "+it.pid.Id+"'s peer: "+Brief(err))
	}
	it.box.PostUserMessage(&brokenOff{})
}

// countBroken counts a connection that this side has broken off because of its records. A failure
// of a handshake is counted there.
func (it *ident) countBroken(err error) {
	var (
		tampered *TamperedError
		overused *secure.LimitError
	)
	switch {
	case it.handshake.failedBy(err):
	case errors.As(err, &tampered):
		it.l.secured.Tampered++
	case errors.As(err, &overused):
		it.l.secured.Overused++
	}
}

// goodbyeTime is how long an end waits for its goodbye to leave.
const goodbyeTime = 500 * time.Millisecond

// sayGoodbye sends the goodbye. then is called when the goodbye has left, after the functions that
// already wait for that.
func (it *ident) sayGoodbye(then func()) {
	it.life.goodbye.add(then)
	switch c := it.conn; {
	case c == nil || !c.SayGoodbye():
		it.goodbyeDone()
	case it.life.goodbye.timer == nil:
		it.life.goodbye.timer = it.l.el.AfterFunc(goodbyeTime, func() { it.box.Deliver(&goodbyeLeft{}) })
	}
}

// goodbyeDone calls the functions that wait for the goodbye, if there are any.
func (it *ident) goodbyeDone() {
	then := it.life.goodbye.take()
	if then == nil {
		return
	}
	if it.conn != nil {
		it.conn.ForgoGoodbye()
	}
	then()
}
