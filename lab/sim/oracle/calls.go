package oracle

import (
	"encoding/binary"
	"math"
	"time"
)

// Calls judges calls: each has one outcome, which is true, and has it in time. Calls are numbered
// in the order in which they are entered, and their bytes identify their call. The zero value, with
// Fail set, is empty.
type Calls struct {
	Fail Fail
	// Late is how long after its deadline a call may end, and a handler may learn of it on the
	// server. Transit is how long an action of one side may take to be visible on the other.
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
	repeat         bool          // may be executed more than once

	begun    int // executions
	running  int
	returned []string // results of the executions that have ended
	over     bool
	ended    time.Duration // when over
	moot     bool          // the caller is gone
	slow     bool          // the caller's machine may be late
	far      bool          // a fault hits the server or the path to it
	never    bool          // reported as not executed
	reported bool          // already reported as late
}

// The lengths of calls' messages: their number comes first.
const (
	MinCall = 8
	// the directions of Fill
	requests = 1 << 50
	replies  = 1<<50 + 1
	uploads  = 1 << 23
)

// Call enters a call that is about to be made. request and reply are lengths of at least MinCall.
// deadline is when its caller stops waiting; 0: never. repeat: it may be executed more than once.
func (l *Calls) Call(name string, request, reply int, deadline time.Duration, repeat bool) *Call {
	c := &Call{
		l: l, number: uint64(len(l.calls)), name: name, request: request, reply: reply, deadline: deadline, repeat: repeat,
	}
	l.calls = append(l.calls, c)
	return c
}

// Number returns its number, with which its bytes begin.
func (c *Call) Number() uint64 { return c.number }

// Request returns the bytes of its request.
func (c *Call) Request() []byte { return c.newPayload(c.request, requests) }

// Reply returns the bytes of its answer.
func (c *Call) Reply() []byte { return c.newPayload(c.reply, replies) }

func (c *Call) newPayload(n int, direction uint64) []byte {
	p := make([]byte, n)
	Fill(p, direction, c.number)
	binary.LittleEndian.PutUint64(p, c.number)
	return p
}

// wrongIn returns the index of the first byte of p that differs from the call's, or -1.
func (c *Call) wrongIn(p []byte, direction uint64) int {
	for i := MinCall; i < len(p); i++ {
		if p[i] != byteAt(direction, c.number, i) {
			return i
		}
	}
	return -1
}

// NumberOf returns the number of the call to which a request or an answer belongs; the largest
// number: none.
func NumberOf(p []byte) uint64 {
	if len(p) < MinCall {
		return math.MaxUint64
	}
	return binary.LittleEndian.Uint64(p)
}

// Begins enters that a handler is called with a request, and with a deadline; 0: none. It returns
// nil if the bytes belong to no call.
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
	c.judgeStart(now, deadline)
	return c
}

// judgeStart judges when a handler is called.
func (c *Call) judgeStart(now, deadline time.Duration) {
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

// Slow enters that a fault hits the caller's machine: everything there may be late.
func (c *Call) Slow() { c.slow = true }

// Far enters that a fault hits the server's machine, or the path to it.
func (c *Call) Far() { c.far = true }

// Noticed enters that a handler's context has ended.
func (c *Call) Noticed(now time.Duration) {
	if c.over && !c.slow && !c.far && now > c.ended+c.l.Transit {
		c.l.Fail("%v: %s: its handler learns now that its caller has gone at %v", now, c.name, c.ended)
	}
}

// Lost enters that a handler's process has ended.
func (c *Call) Lost() { c.running-- }

// Returns enters that a handler returns: successfully if how is empty, or with that error.
func (c *Call) Returns(how string) {
	c.running--
	c.returned = append(c.returned, how)
}

// Instead enters that an interceptor has replaced the result of an execution, or has answered
// without one; how is as in Returns.
func (c *Call) Instead(how string) { c.returned = append(c.returned, how) }

// Gone enters that its caller's process has ended: its outcome is not observed.
func (c *Call) Gone() { c.moot = true }

// Answered enters a successful outcome with its handler's answer.
func (c *Call) Answered(now time.Duration, r []byte) {
	c.recordOutcome(now)
	switch i := c.wrongIn(r, replies); {
	case len(r) != c.reply:
		c.l.Fail("%v: %s is answered with %d bytes, want %d", now, c.name, len(r), c.reply)
	case NumberOf(r) != c.number:
		c.l.Fail("%v: %s gets the answer of %s", now, c.name, c.l.nameOf(NumberOf(r)))
	case i >= 0:
		c.l.Fail("%v: %s: byte %d of its answer is wrong", now, c.name, i)
	}
	c.judgeResult(now, "")
}

func (l *Calls) nameOf(number uint64) string {
	if number >= uint64(len(l.calls)) {
		return "nobody"
	}
	return l.calls[number].name
}

// Refused enters an outcome that is its handler's error.
func (c *Call) Refused(now time.Duration, how string) {
	c.recordOutcome(now)
	c.judgeResult(now, how)
}

// judgeResult judges whether a handler has ended with that result.
func (c *Call) judgeResult(now time.Duration, how string) {
	for _, r := range c.returned {
		if r == how {
			return
		}
	}
	c.l.Fail("%v: %s ends as if its handler had returned %q, and it was executed %d times and has returned %q", now, c.name, how, c.begun, c.returned)
}

// Executed enters another outcome, which implies that its handler has ended.
func (c *Call) Executed(now time.Duration) {
	c.recordOutcome(now)
	if len(c.returned) == 0 {
		c.l.Fail("%v: %s is reported as answered by its handler, which was called %d times and has not returned", now, c.name, c.begun)
	}
}

// NotExecuted enters the outcome that it was certainly not executed.
func (c *Call) NotExecuted(now time.Duration) {
	c.recordOutcome(now)
	c.never = true
	if c.begun > 0 {
		c.l.Fail("%v: %s is reported as not executed, and was executed %d times", now, c.name, c.begun)
	}
}

// Unknown enters an outcome that leaves open whether it was executed.
func (c *Call) Unknown(now time.Duration) { c.recordOutcome(now) }

func (c *Call) recordOutcome(now time.Duration) {
	if c.over {
		c.l.Fail("%v: %s has another outcome, and had one at %v", now, c.name, c.ended)
	}
	c.judgeLateness(now)
	c.over, c.ended = true, now
}

// judgeLateness judges whether the call's outcome is overdue.
func (c *Call) judgeLateness(now time.Duration) {
	if l := c.l; !c.over && !c.moot && !c.reported && !c.slow && c.deadline != 0 && now > c.deadline+l.Late {
		c.reported = true
		l.Fail("%v: %s has had no outcome, and its deadline was %v", now, c.name, c.deadline)
	}
}

// Check judges the calls now.
func (l *Calls) Check(now time.Duration) {
	for _, c := range l.calls {
		c.judgeLateness(now)
	}
}

// Outstanding lists the calls without an outcome.
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

// End judges the remaining calls at the end of the world.
func (l *Calls) End(now time.Duration) {
	if left := l.Outstanding(); len(left) > 0 {
		l.Fail("%v: %d calls have no outcome: %s", now, len(left), firstFew(left))
	}
}

// Deadline returns when its caller stops waiting; 0: never.
func (c *Call) Deadline() time.Duration { return c.deadline }
