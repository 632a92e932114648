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
	it.l.rt.log.Warn("rdma: connection broken off", it.logKeys(states.OpDisconnect, "err", Brief(err))...)
	c.BreakDown(err)
	it.note(FlightEnd, "broken off", errnoOf(err))
	var (
		wrong    *ProtocolError
		tampered *TamperedError
		overused *secure.LimitError
	)
	switch {
	case it.handshake.failedBy(err): // it has counted that
	case errors.As(err, &tampered):
		it.l.secured.Tampered++
	case errors.As(err, &overused):
		it.l.secured.Overused++
	}
	if errors.As(err, &wrong) {
		it.l.dump(FlightEnd, "protocol violation of "+it.pid.Id+"'s peer: "+Brief(err))
	}
	it.box.PostUserMessage(&brokenOff{})
}

// goodbyeTime is how long an end waits for its goodbye to leave.
const goodbyeTime = 500 * time.Millisecond

// sayGoodbye sends the goodbye. then is called when the goodbye has left, after the functions that
// already wait for that.
func (e *endpoint) sayGoodbye(then func()) {
	e.life.goodbye.add(then)
	switch c := e.conn; {
	case c == nil || !c.SayGoodbye():
		e.goodbyeDone()
	case e.life.goodbye.timer == nil:
		e.life.goodbye.timer = e.l.el.AfterFunc(goodbyeTime, func() { e.box.Deliver(&goodbyeLeft{}) })
	}
}

// goodbyeDone calls the functions that wait for the goodbye, if there are any.
func (e *endpoint) goodbyeDone() {
	then := e.life.goodbye.take()
	if then == nil {
		return
	}
	if e.conn != nil {
		e.conn.ForgoGoodbye()
	}
	then()
}
