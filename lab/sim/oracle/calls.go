package oracle

import (
	"encoding/binary"
	"math"
	"time"
)

// Calls judges calls: each has one outcome, which is true, and has it in time. Calls are numbered
// in the order in which they are entered, and their bytes say which call they are of. The zero
// value, with Fail set, is empty.
type Calls struct {
	Fail Fail
	// Late is how long after its deadline a call may end, and a handler may learn of it on its own
	// side. Transit is how long what one side does may take to be seen on the other.
	Late, Transit time.Duration

	calls []*Call
}

// Call is a call that is judged.
type Call struct {
	l              *Calls
	number         uint64
	name           string
	request, reply int
	deadline       time.Duration // 0: none
	repeat         bool          // it may be executed more than once

	begun    int // executions
	running  int
	returned []string // how executions have ended
	over     bool
	ended    time.Duration // when over
	moot     bool          // its caller is gone
	slow     bool          // its caller's machine may be late
	far      bool          // the server's, or the way there
	never    bool          // it is reported not to have been executed
	reported bool          // as late
}

// The lengths of what calls carry: their number comes first.
const (
	MinCall = 8
	// the directions of Fill
	requests = 1 << 50
	replies  = 1<<50 + 1
)

// Call enters a call that is about to be made. request and reply are lengths, of MinCall at least.
// deadline is when its caller stops waiting; 0: never. repeat says that it may be executed more
// than once.
func (l *Calls) Call(name string, request, reply int, deadline time.Duration, repeat bool) *Call {
	c := &Call{
		l: l, number: uint64(len(l.calls)), name: name, request: request, reply: reply, deadline: deadline, repeat: repeat,
	}
	l.calls = append(l.calls, c)
	return c
}

// Number is its number, with which its bytes begin.
func (c *Call) Number() uint64 { return c.number }

// Request gives the bytes of its request.
func (c *Call) Request() []byte { return c.bytes(c.request, requests) }

// Reply gives the bytes of its answer.
func (c *Call) Reply() []byte { return c.bytes(c.reply, replies) }

func (c *Call) bytes(n int, direction uint64) []byte {
	p := make([]byte, n)
	Fill(p, direction, c.number)
	binary.LittleEndian.PutUint64(p, c.number)
	return p
}

// wrongIn is the first byte of p that is not the call's; -1 if there is none.
func (c *Call) wrongIn(p []byte, direction uint64) int {
	for i := MinCall; i < len(p); i++ {
		if p[i] != at(direction, c.number, i) {
			return i
		}
	}
	return -1
}

// NumberOf is the number of the call that has a request or an answer; the largest one: none.
func NumberOf(p []byte) uint64 {
	if len(p) < MinCall {
		return math.MaxUint64
	}
	return binary.LittleEndian.Uint64(p)
}

// Begins enters that a handler was called with a request, whose time is over at deadline; 0: never.
// nil: it is no call's.
func (l *Calls) Begins(now time.Duration, q []byte, deadline time.Duration) *Call {
	number := NumberOf(q)
	if number >= uint64(len(l.calls)) {
		l.Fail("%v: a handler gets %d bytes that nobody has sent", now, len(q))
		return nil
	}
	c := l.calls[number]
	c.begun++
	c.running++
	switch i := c.wrongIn(q, requests); {
	case len(q) != c.request:
		l.Fail("%v: %s: its handler gets %d bytes, %d were sent", now, c.name, len(q), c.request)
	case i >= 0:
		l.Fail("%v: %s: byte %d of its request is wrong", now, c.name, i)
	case c.never:
		l.Fail("%v: %s is executed, and was reported as not executed", now, c.name)
	case c.begun > 1 && !c.repeat:
		l.Fail("%v: %s is executed %d times", now, c.name, c.begun)
	}
	c.timely(now, deadline)
	return c
}

// timely judges when a handler is called.
func (c *Call) timely(now, deadline time.Duration) {
	l := c.l
	switch {
	case c.deadline != 0 && deadline == 0:
		l.Fail("%v: %s: its handler has no deadline, and its caller waits until %v", now, c.name, c.deadline)
	case c.far:
	case deadline != 0 && now > deadline+l.Late:
		l.Fail("%v: %s: its handler begins %v after its own deadline", now, c.name, now-deadline)
	case c.slow:
	case c.deadline != 0 && deadline > c.deadline+l.Transit:
		l.Fail("%v: %s: its handler has time until %v, and its caller waits until %v", now, c.name, deadline, c.deadline)
	case c.deadline != 0 && now > c.deadline+l.Transit:
		l.Fail("%v: %s: its handler begins, and its caller was waiting until %v", now, c.name, c.deadline)
	case c.over && now > c.ended+l.Transit:
		l.Fail("%v: %s: its handler begins, and its caller has gone at %v", now, c.name, c.ended)
	}
}

// Slow enters that a fault hits the caller's machine: it may be late with everything.
func (c *Call) Slow() { c.slow = true }

// Far enters that a fault hits the server's machine, or the way there.
func (c *Call) Far() { c.far = true }

// Noticed enters that a handler sees its context end.
func (c *Call) Noticed(now time.Duration) {
	if c.over && !c.slow && !c.far && now > c.ended+c.l.Transit {
		c.l.Fail("%v: %s: its handler learns now that its caller has gone at %v", now, c.name, c.ended)
	}
}

// Lost enters that a handler's process has ended.
func (c *Call) Lost() { c.running-- }

// Returns enters that a handler ends: with an answer if how is empty, or how else.
func (c *Call) Returns(how string) {
	c.running--
	c.returned = append(c.returned, how)
}

// Instead enters that an interceptor has ended an execution, or has answered before there was one:
// how is that of Returns.
func (c *Call) Instead(how string) { c.returned = append(c.returned, how) }

// Gone enters that its caller's process has ended: nobody sees an outcome.
func (c *Call) Gone() { c.moot = true }

// Answered enters the outcome that its handler has answered.
func (c *Call) Answered(now time.Duration, r []byte) {
	c.end(now)
	switch i := c.wrongIn(r, replies); {
	case len(r) != c.reply:
		c.l.Fail("%v: %s is answered with %d bytes, want %d", now, c.name, len(r), c.reply)
	case NumberOf(r) != c.number:
		c.l.Fail("%v: %s gets the answer of %s", now, c.name, c.l.nameOf(NumberOf(r)))
	case i >= 0:
		c.l.Fail("%v: %s: byte %d of its answer is wrong", now, c.name, i)
	}
	c.explained(now, "")
}

func (l *Calls) nameOf(number uint64) string {
	if number >= uint64(len(l.calls)) {
		return "nobody"
	}
	return l.calls[number].name
}

// Refused enters an outcome that its handler has caused: how it has ended.
func (c *Call) Refused(now time.Duration, how string) {
	c.end(now)
	c.explained(now, how)
}

// explained judges whether a handler has ended so.
func (c *Call) explained(now time.Duration, how string) {
	for _, r := range c.returned {
		if r == how {
			return
		}
	}
	c.l.Fail("%v: %s ends as if its handler had returned %q, and it was executed %d times and has returned %q", now, c.name, how, c.begun, c.returned)
}

// Executed enters another outcome, which says that its handler has ended.
func (c *Call) Executed(now time.Duration) {
	c.end(now)
	if len(c.returned) == 0 {
		c.l.Fail("%v: %s is reported as answered by its handler, which was called %d times and has not returned", now, c.name, c.begun)
	}
}

// NotExecuted enters the outcome that it was certainly not executed.
func (c *Call) NotExecuted(now time.Duration) {
	c.end(now)
	c.never = true
	if c.begun > 0 {
		c.l.Fail("%v: %s is reported as not executed, and was executed %d times", now, c.name, c.begun)
	}
}

// Unknown enters an outcome that says nothing of whether it was executed.
func (c *Call) Unknown(now time.Duration) { c.end(now) }

func (c *Call) end(now time.Duration) {
	if c.over {
		c.l.Fail("%v: %s has another outcome, and had one at %v", now, c.name, c.ended)
	}
	c.late(now)
	c.over, c.ended = true, now
}

// late judges whether it should have had its outcome.
func (c *Call) late(now time.Duration) {
	if l := c.l; !c.over && !c.moot && !c.reported && !c.slow && c.deadline != 0 && now > c.deadline+l.Late {
		c.reported = true
		l.Fail("%v: %s has had no outcome, and its deadline was %v", now, c.name, c.deadline)
	}
}

// Check judges the calls now.
func (l *Calls) Check(now time.Duration) {
	for _, c := range l.calls {
		c.late(now)
	}
}

// Outstanding lists the calls that have no outcome yet.
func (l *Calls) Outstanding() (all []string) {
	for _, c := range l.calls {
		if !c.over && !c.moot {
			all = append(all, c.name)
		}
	}
	return all
}

// Running lists the calls whose handlers run.
func (l *Calls) Running() (all []string) {
	for _, c := range l.calls {
		if c.running > 0 {
			all = append(all, c.name)
		}
	}
	return all
}

// End judges what is left when all is over.
func (l *Calls) End(now time.Duration) {
	if left := l.Outstanding(); len(left) > 0 {
		l.Fail("%v: %d calls have no outcome: %s", now, len(left), some(left))
	}
}

// Deadline is when its caller stops waiting; 0: never.
func (c *Call) Deadline() time.Duration { return c.deadline }
