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

// do executes cmd on the device. Once cmd is legal, prepare takes the steps that cannot be undone;
// it ends in Proceed or Answer. nil: no steps. answer is called with the answer.
func (t *commandTable) do(cmd Command, prepare func(*cmid.Pending), answer func(Event)) *cmid.Pending {
	t.observeCommand(func(o CommandObserver) { o.Begun(t.pid, t.id.Handle(), cmd) })
	p, legal := t.id.Begin(cmd, t.observed(cmd, answer))
	p.Due = t.l.el.Now().Add(t.l.rt.cfg.Timeouts.phase(cmd))
	if legal {
		if err := t.exposes(cmd); err != nil {
			p.Answer(t.commandFailed(cmd, err))
		} else if prepare != nil {
			prepare(p)
		} else {
			p.Proceed(cmd)
		}
	}
	t.moved(cmd.Op())
	t.rearm()
	return p
}

// doInner is do for a step of another command, or for a step that no command has asked for. Once
// the identifier is ending, the answer is dropped.
func (t *commandTable) doInner(cmd Command, prepare func(*cmid.Pending), then func(Event)) {
	p := t.do(cmd, prepare, func(ev Event) {
		if !t.ending() {
			then(ev)
		}
	})
	p.Inner = true
	if t.attempts != nil {
		p.Due = t.attempts.stepDeadline(p.Due)
		t.rearm()
	}
}

// expect registers a command that the identifier carries out with others.
func (t *commandTable) expect(cmd Command, sender *actor.PID) *cmid.Pending {
	return t.id.Expect(cmd, t.observed(cmd, t.replyTo(sender)))
}

// observed notifies the Observer of cmd's transition and answer first.
func (t *commandTable) observed(cmd Command, answer func(Event)) func(Event) {
	return func(ev Event) {
		t.moved(cmd.Op())
		t.rearm()
		t.observeCommand(func(o CommandObserver) { o.Answered(t.pid, t.id.Handle(), cmd, ev) })
		answer(ev)
	}
}

// answered records that the request was answered, and how, once.
func (t *commandTable) answered(how fate) {
	if in := t.asked; in != nil {
		t.asked = nil
		in.via.count(how)
		t.l.requests.Free(in.listener)
		t.rearm()
	}
}

// failCommand answers the command whose execution was interrupted, if there is one.
func (t *commandTable) failCommand() {
	if cmd := t.cmd; cmd != nil && !t.waits(cmd) {
		t.cmd = nil
		t.fail(cmd, t.cmdSender, t.life.cause)
	}
}

// waits reports whether cmd will be answered later.
func (t *commandTable) waits(cmd Command) bool {
	return slices.ContainsFunc(t.pending(), func(p *cmid.Pending) bool { return p.Command == cmd }) ||
		slices.ContainsFunc(t.closers, func(c closer) bool { return c.cmd == cmd })
}

// answerLate answers the commands that wait for something other than the end.
func (t *commandTable) answerLate() {
	for _, p := range slices.Clone(t.pending()) {
		if _, ok := p.Command.(*cmid.DestroyID); !ok {
			p.Answer(t.late(p.Command))
		}
	}
}

// replyTo returns a function that sends an answer to the sender of a command. The owner gets some
// answers first.
func (t *commandTable) replyTo(sender *actor.PID) func(Event) {
	return func(ev Event) {
		if lifecycle(ev) && !t.owns(sender) && t.reportedEnd != ev {
			t.notify(ev) // the owner always gets these
		}
		t.reply(sender, ev)
	}
}

// rearm sets the timer to the earliest deadline.
func (t *commandTable) rearm() {
	if t.ending() {
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

func (t *commandTable) handover(c *Handover, sender *actor.PID) {
	if c.To == nil {
		t.fail(c, sender, fmt.Errorf("Handover.To is nil: %w", unix.EINVAL))
		return
	}
	if err := t.l.rt.CheckOwner(c.To); err != nil {
		t.fail(c, sender, err)
		return
	}
	was := t.owner
	to := sender
	if to == nil {
		to = was.pid
	}
	t.unwatch()
	t.setOwner(t.l.rt.newOwner(t.l, c.To))
	t.watch()
	done := &cmid.Done{EventBase: t.base(), Command: c}
	switch {
	case to == nil:
	case was.pid != nil && t.l.rt.registry.Same(to, was.pid):
		t.send(was, done)
	default:
		t.reply(to, done)
	}
}

// call runs a Call's function with the plain identifier.
func (t *commandTable) call(c *Call, sender *actor.PID) {
	if c.Fn == nil {
		t.fail(c, sender, fmt.Errorf("Call.Fn is nil: %w", unix.EINVAL))
		return
	}
	if err := c.Fn(t.id); err != nil {
		t.fail(c, sender, err)
		return
	}
	t.reply(sender, &cmid.Done{EventBase: t.base(), Command: c})
}

// stays reports whether the identifier stays when its connection ends: its owner is Manual, and has
// not sent a Close.
func (t *commandTable) stays() bool { return t.cfg.Manual && len(t.closers) == 0 }

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

// overdue reports whether a Close has waited for too long.
func (t *commandTable) overdue(now time.Time) bool {
	return slices.ContainsFunc(t.closers, func(c closer) bool { return !c.due.IsZero() && !c.due.After(now) })
}

// slack is how much longer than the device an identifier waits, if the device has a time-out. When
// the device reports its time-out, the command may be sent again. When slack runs out as well, the
// device is stuck, and the identifier is lost.
const slack = 250 * time.Millisecond

// phase returns how long a command may take.
func (t *Timeouts) phase(cmd Command) time.Duration {
	switch c := cmd.(type) {
	case *cmid.ResolveAddr:
		return positive(c.Timeout, t.Address) + slack
	case *cmid.ResolveRoute:
		return positive(c.Timeout, t.Route) + slack
	case *cmid.SetIBPath:
		return t.Route + slack
	case *cmid.Connect, *cmid.Accept, *cmid.Establish, *cmid.Disconnect, *cmid.GetAddrInfo, *cmid.ResolveIBService:
		return t.Connect
	}
	return t.Address + slack
}
