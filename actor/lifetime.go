package actor

import (
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// lifetime has the stage of an identifier, the cause of its end, and the functions that wait for
// the goodbye.
type lifetime struct {
	stage   lifeStage
	cause   error   // why it ended; nil: it was asked for
	goodbye goodbye // the next step waits for it
}

// lifeStage only goes forward.
//
//	alive ──► ending ──► gone ──► closed
//	  └───────────────────▲
//
// Identifiers that could not be made, and those that the device has closed without a request, go
// straight from alive to gone. Two facts are kept apart from these steps, because they may occur
// before or after them: whether the owner knows of the connection's end (outbox.reportedEnd), since
// a Manual owner learns of it while the identifier is alive, others when it is ending; and the
// goodbye that the next step waits for. A connection has its own lifetime: connState.
type lifeStage uint8

const (
	// lifeAlive accepts commands.
	lifeAlive lifeStage = iota
	// lifeEnding is being destroyed: commands are answered with ENOENT, or with Closed if they end
	// it.
	lifeEnding
	// lifeGone has nothing in the device that its actor waits for: it was returned, could not be
	// made, or is left to the loop (loop.orphans).
	lifeGone
	// lifeClosed has reported Closed, the last event. Messages now go to a stopped actor.
	lifeClosed
)

func (s lifeStage) String() string { return [...]string{"alive", "ending", "gone", "closed"}[s] }

// setCause sets the cause, unless an earlier one is known.
func (l *lifetime) setCause(cause error) {
	if l.cause == nil {
		l.cause = cause
	}
}

// goodbye is the wait for this side's goodbye to leave.
type goodbye struct {
	then  func()           // called afterwards; nil: nothing waits
	timer *eventloop.Timer // bounds the wait; nil: not set
}

// addWaiter registers then to be called after the functions that wait already.
func (g *goodbye) addWaiter(then func()) {
	if before := g.then; before != nil {
		after := then
		then = func() { before(); after() }
	}
	g.then = then
}

// takeWaiters ends the wait. nil: nothing waits.
func (g *goodbye) takeWaiters() (then func()) {
	then, g.then = g.then, nil
	if then != nil && g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	return then
}

// goodbyeTime is how long an end waits for its goodbye to leave.
const goodbyeTime = 500 * time.Millisecond

// sayGoodbye sends the goodbye. then is called when the goodbye has left, after the functions that
// already wait for that.
func (e *endpoint) sayGoodbye(then func()) {
	e.life.goodbye.addWaiter(then)
	switch c := e.conn; {
	case c == nil || !c.SayGoodbye():
		e.goodbyeDone()
	case e.life.goodbye.timer == nil:
		e.life.goodbye.timer = e.l.el.AfterFunc(goodbyeTime, func() { e.box.Deliver(&goodbyeLeft{}) })
	}
}

// goodbyeDone calls the functions that wait for the goodbye, if there are any.
func (e *endpoint) goodbyeDone() {
	then := e.life.goodbye.takeWaiters()
	if then == nil {
		return
	}
	if e.conn != nil {
		e.conn.ForgoGoodbye()
	}
	then()
}
