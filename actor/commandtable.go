package actor

import (
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// commandTable executes an identifier's commands, and watches the deadlines of all that waits for
// an answer: commands, the peer's request, and Close. cmid.ID.Pending has the rows.
type commandTable struct {
	sends
	timer    *eventloop.Timer  // of the earliest deadline; nil until the first
	asked    *incoming         // the peer's request; nil: none waits for its answer
	attempts *attempts         // the Dial or Serve under way; nil: none
	closers  []closer          // the commands that are answered with Closed
	options  []*cmid.SetOption // repeated when Dial needs a new identifier
}

// executeOnDevice executes cmd on the device. Once cmd is legal, prepare takes the steps that
// cannot be undone; it ends in Proceed or Answer. nil: no steps. answer is called with the answer.
func (t *commandTable) executeOnDevice(cmd Command, prepare func(*cmid.Pending), answer func(Event)) {
	t.execute(cmd, prepare, t.observeAnswer(cmd, answer))
}

// execute is executeOnDevice for an answer that calls noteAnswer.
func (t *commandTable) execute(cmd Command, prepare func(*cmid.Pending), answer func(Event)) *cmid.Pending {
	t.observeCommand(func(o CommandObserver) { o.Begun(t.pid, t.id.Handle(), cmd) })
	p, legal := t.id.Begin(cmd, answer)
	p.Due = t.l.el.Now().Add(t.l.rt.cfg.Timeouts.forCommand(cmd))
	if legal {
		if err := t.checkExposure(cmd); err != nil {
			p.Answer(t.commandFailed(cmd, err))
		} else if prepare != nil {
			prepare(p)
		} else {
			p.Proceed(cmd)
		}
	}
	t.reportTransition(cmd.Op())
	t.resetTimer()
	return p
}

// executeStep executes a step of another command, or a step that no command has asked for. Once
// the identifier is ending, the answer is dropped.
func (t *commandTable) executeStep(cmd Command, prepare func(*cmid.Pending), then func(Event)) {
	p := t.execute(cmd, prepare, func(ev Event) {
		t.noteAnswer(cmd, ev)
		if !t.isEnding() {
			then(ev)
		}
	})
	p.Inner = true
	if t.attempts != nil {
		p.Due = t.attempts.stepDeadline(p.Due)
		t.resetTimer()
	}
}

// expectCommand registers a command that the identifier carries out with others.
func (t *commandTable) expectCommand(cmd Command, sender *actor.PID) *cmid.Pending {
	return t.id.Expect(cmd, t.observeAnswer(cmd, t.replyTo(sender)))
}

// observeAnswer returns answer, preceded by a notice of cmd's transition to the Observer.
func (t *commandTable) observeAnswer(cmd Command, answer func(Event)) func(Event) {
	return func(ev Event) {
		t.noteAnswer(cmd, ev)
		answer(ev)
	}
}

// noteAnswer does what every answer needs, before its receiver gets it.
func (t *commandTable) noteAnswer(cmd Command, ev Event) {
	t.reportTransition(cmd.Op())
	t.resetTimer()
	t.observeCommand(func(o CommandObserver) { o.Answered(t.pid, t.id.Handle(), cmd, ev) })
}

// requestAnswered records that the request was answered, and how, once.
func (t *commandTable) requestAnswered(how fate) {
	if in := t.asked; in != nil {
		t.asked = nil
		in.via.countRequest(how)
		t.l.requests.Free(in.listener)
		t.resetTimer()
	}
}

// failCommand answers the command whose execution was interrupted, if there is one.
func (t *commandTable) failCommand() {
	if cmd := t.cmd; cmd != nil && !t.awaitsAnswer(cmd) {
		t.cmd = nil
		t.answerFailed(cmd, t.cmdSender, t.life.cause)
	}
}

// awaitsAnswer reports whether cmd will be answered later.
func (t *commandTable) awaitsAnswer(cmd Command) bool {
	return slices.ContainsFunc(t.pendingCommands(), func(p *cmid.Pending) bool { return p.Command == cmd }) ||
		slices.ContainsFunc(t.closers, func(c closer) bool { return c.cmd == cmd })
}

// answerLate answers the commands that wait for something other than the end.
func (t *commandTable) answerLate() {
	for _, p := range slices.Clone(t.pendingCommands()) {
		if _, ok := p.Command.(*cmid.DestroyID); !ok {
			p.Answer(t.endingAnswer(p.Command))
		}
	}
}

// replyTo returns a function that sends an answer to the sender of a command. The owner gets some
// answers first.
func (t *commandTable) replyTo(sender *actor.PID) func(Event) {
	return func(ev Event) {
		if isLifecycle(ev) && !t.isOwner(sender) && t.reportedEnd != ev {
			t.notifyOwner(ev) // the owner always gets these
		}
		t.answerSender(sender, ev)
	}
}

// resetTimer sets the timer to the earliest deadline.
func (t *commandTable) resetTimer() {
	if t.isEnding() {
		return
	}
	var first time.Time
	if t.asked != nil {
		first = t.asked.due
	}
	sooner := func(due time.Time) {
		if !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	for _, p := range t.id.Pending() {
		sooner(p.Due)
	}
	for _, c := range t.closers {
		sooner(c.due)
	}
	switch {
	case first.IsZero() && t.timer != nil:
		t.timer.Stop()
		if len(t.id.Pending()) == 0 { // else the next step of a Dial needs it
			t.timer = nil // an idle connection has no timer
		}
	case first.IsZero():
	default:
		if t.timer == nil {
			t.timer = t.l.el.NewTimer(func() { t.box.Deliver(&tick{}) })
		}
		t.timer.Reset(first.Sub(t.l.el.Now()))
	}
}

func (t *commandTable) executeHandover(c *Handover, sender *actor.PID) {
	if c.To == nil {
		t.answerFailed(c, sender, fmt.Errorf("Handover.To is nil: %w", unix.EINVAL))
		return
	}
	if err := t.l.rt.CheckOwner(c.To); err != nil {
		t.answerFailed(c, sender, err)
		return
	}
	was := t.owner
	to := sender
	if to == nil {
		to = was.pid
	}
	t.unwatchOwner()
	t.setOwner(t.l.rt.newOwner(t.l, c.To))
	t.watchOwner()
	done := &cmid.Done{EventBase: t.eventBase(), Command: c}
	switch {
	case to == nil:
	case was.pid != nil && t.l.rt.registry.Same(to, was.pid):
		t.sendEvent(was, done)
	default:
		t.answerSender(to, done)
	}
}

// executeCall runs a Call's function with the plain identifier.
func (t *commandTable) executeCall(c *Call, sender *actor.PID) {
	if c.Fn == nil {
		t.answerFailed(c, sender, fmt.Errorf("Call.Fn is nil: %w", unix.EINVAL))
		return
	}
	if err := c.Fn(t.id); err != nil {
		t.answerFailed(c, sender, err)
		return
	}
	t.answerSender(sender, &cmid.Done{EventBase: t.eventBase(), Command: c})
}

// outlivesConnection reports whether the identifier stays when its connection ends: its owner is
// Manual, and has not sent a Close.
func (t *commandTable) outlivesConnection() bool { return t.cfg.Manual && len(t.closers) == 0 }

// closer is a command that is answered with Closed.
type closer struct {
	cmd    Command
	sender *actor.PID
	silent bool      // its answer is not sent
	due    time.Time // zero: no deadline
}

// awaitClosed registers cmd to be answered with Closed.
func (t *commandTable) awaitClosed(cmd Command, sender *actor.PID) {
	t.closers = append(t.closers, closer{cmd: cmd, sender: sender})
}

// takeCloser removes and returns the oldest command that waits for Closed.
func (t *commandTable) takeCloser() (c closer) {
	c, t.closers = t.closers[0], t.closers[1:]
	return c
}

// closeOverdue reports whether a Close has waited for too long.
func (t *commandTable) closeOverdue(now time.Time) bool {
	return slices.ContainsFunc(t.closers, func(c closer) bool { return !c.due.IsZero() && !c.due.After(now) })
}

// slack is how much longer than the device an identifier waits, if the device has a time-out. When
// the device reports its time-out, the command may be sent again. When slack runs out as well, the
// device is stuck, and the identifier is lost.
const slack = 250 * time.Millisecond

// forCommand returns how long a command may take.
func (t *Timeouts) forCommand(cmd Command) time.Duration {
	switch c := cmd.(type) {
	case *cmid.ResolveAddr:
		return positiveOr(c.Timeout, t.Address) + slack
	case *cmid.ResolveRoute:
		return positiveOr(c.Timeout, t.Route) + slack
	case *cmid.SetIBPath:
		return t.Route + slack
	case *cmid.Connect, *cmid.Accept, *cmid.Establish, *cmid.Disconnect, *cmid.GetAddrInfo, *cmid.ResolveIBService:
		return t.Connect
	}
	return t.Address + slack
}
