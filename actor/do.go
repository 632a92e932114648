package actor

import (
	"slices"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// do has the identifier execute a command, and waits for its answer.
func (it *ident) do(a *asked) {
	if err := it.exposes(a.cmd); err != nil {
		it.refuse(a, err)
		return
	}
	it.asked = append(it.asked, a)
	it.begin(a)
}

// begin is do for a command that waits already.
func (it *ident) begin(a *asked) {
	cmd := a.cmd
	if a.wire != nil {
		cmd = a.wire
	}
	it.observeCommand(func(o CommandObserver) { o.Begun(it.pid, it.id.Handle(), a.cmd) })
	ev := it.id.Do(cmd)
	it.moved(cmd.Op())
	if ev != nil {
		it.answer(cmd, ev)
		return
	}
	it.setDeadline(a)
}

// take removes a command from those that wait: the user's, or what it is on the wire. If one value
// was sent several times, that is the last: it is refused at once, while the device has the first.
func (it *ident) take(cmd Command) *asked {
	for i, a := range slices.Backward(it.asked) {
		if a.cmd == cmd || a.wire == cmd {
			it.asked = append(it.asked[:i], it.asked[i+1:]...)
			it.rearm()
			return a
		}
	}
	return nil
}

// answer ends a command that waits. The answer goes to its sender, to the composite that it is
// part of, or to the owner.
func (it *ident) answer(cmd Command, ev Event) {
	a := it.take(cmd)
	defer it.deliverAnswer(a, ev) // also if the Observer does not return
	if a != nil {
		it.observeCommand(func(o CommandObserver) { o.Answered(it.pid, it.id.Handle(), a.cmd, ev) })
	}
}

// deliverAnswer is the second half of answer. a is nil if no command waits.
func (it *ident) deliverAnswer(a *asked, ev Event) {
	switch {
	case a == nil:
		it.notify(ev)
	case a.then != nil:
		a.then(ev)
	default:
		if a.wire != nil {
			restore(ev, a.cmd)
		}
		it.replyTo(a, ev)
		f, failed := ev.(*cmid.CommandFailed)
		if failed {
			it.failWith(a.cmd, f.Err)
		}
		if failed && a.wire != nil && it.id.State() == states.Failed && !it.cfg.Manual {
			it.destroy(f) // an Accept whose peer had gone: nothing else helps, as after Unreachable
		}
	}
}

// replyTo sends an answer to the sender of a command, also if the owner, which gets some answers
// first, or the Observer does not return.
func (it *ident) replyTo(a *asked, ev Event) {
	defer it.reply(a.sender, ev)
	if lifecycle(ev) && !it.owns(a.sender) {
		it.notify(ev) // the owner always gets these
	}
}

// failWith answers the commands that have waited with one that has failed.
func (it *ident) failWith(first Command, err error) {
	for _, a := range slices.Clone(it.asked) {
		if a.with == first {
			it.take(a.cmd)
			it.fail(a.cmd, a.sender, err)
		}
	}
}
