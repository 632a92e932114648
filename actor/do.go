package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// do executes cmd on the device. Once cmd is legal, prepare takes the steps that cannot be undone;
// it ends in Proceed or Answer. nil: no steps. answer is called with the answer.
func (it *ident) do(cmd Command, prepare func(*cmid.Pending), answer func(Event)) *cmid.Pending {
	it.observeCommand(func(o CommandObserver) { o.Begun(it.pid, it.id.Handle(), cmd) })
	answer = it.observed(cmd, answer)
	p := it.id.DoPrepared(cmd, func(p *cmid.Pending) {
		if err := it.exposes(cmd); err != nil {
			p.Answer(it.commandFailed(cmd, err))
		} else if prepare != nil {
			prepare(p)
		} else {
			p.Proceed(cmd)
		}
	}, func(ev Event) {
		it.moved(cmd.Op())
		answer(ev)
	})
	it.moved(cmd.Op())
	if p != nil {
		p.Due = it.l.el.Now().Add(it.phase(cmd))
	}
	it.rearm()
	return p
}

// doInner is do for a step of another command, or for a step that no command has asked for. Once
// the identifier is ending, the answer is dropped.
func (it *ident) doInner(cmd Command, prepare func(*cmid.Pending), then func(Event)) {
	p := it.do(cmd, prepare, func(ev Event) {
		if !it.ending() {
			then(ev)
		}
	})
	if p != nil {
		p.Inner = true
		if it.attempts != nil {
			p.Due = it.attempts.stepDeadline(p.Due)
			it.rearm()
		}
	}
}

// expect registers a command that the identifier carries out with others.
func (it *ident) expect(cmd Command, sender *actor.PID) *cmid.Pending {
	return it.id.Expect(cmd, it.observed(cmd, it.replyTo(sender)))
}

// observed notifies the Observer of cmd's answer first.
func (it *ident) observed(cmd Command, answer func(Event)) func(Event) {
	return func(ev Event) {
		it.rearm()
		it.observeCommand(func(o CommandObserver) { o.Answered(it.pid, it.id.Handle(), cmd, ev) })
		answer(ev)
	}
}

// replyTo returns a function that sends an answer to the sender of a command. The owner gets some
// answers first.
func (it *ident) replyTo(sender *actor.PID) func(Event) {
	return func(ev Event) {
		if lifecycle(ev) && !it.owns(sender) && it.life.reported != ev {
			it.notify(ev) // the owner always gets these
		}
		it.reply(sender, ev)
	}
}

// answer passes an event to the command that it answers, or to the owner.
func (it *ident) answer(p *cmid.Pending, ev Event) {
	if !p.Answer(ev) {
		it.notify(ev)
	}
}

// pending returns the commands that have no answer yet, except for those that wait for the end.
func (it *ident) pending() []*cmid.Pending {
	if it.id == nil {
		return nil
	}
	return it.id.Pending()
}
