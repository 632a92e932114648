package cmid

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// Pending is a command that has no answer yet: a row in its identifier's table (ID.Pending). It is
// in the table once, from Do or Expect until Answer.
type Pending struct {
	Command Command // as passed to Do
	// Inner and Due are the caller's: a step of another command; when to give up.
	Inner bool
	Due   time.Time

	id       *ID
	answer   func(Event) // nil once it was called
	expected bool        // the caller carries it out (Expect)
	prepares bool        // Proceed was not called yet
	awaits   bool        // an event may answer it
	with     []*Pending

	judgedIn states.State // the state in which Command was legal
	next     states.State // the state that it leads to from there
}

// Do passes cmd to the device, if the state machine allows it. answer is called exactly once with
// the answer: inside Do if it is known by then, else by Pending.Answer with the event that the
// channel's Sink got. The caller must answer the commands that are pending when the identifier is
// destroyed. A nil answer ignores it. Do returns nil if the command was answered.
func (id *ID) Do(cmd Command, answer func(Event)) *Pending {
	p, legal := id.Begin(cmd, answer)
	if legal {
		p.Proceed(cmd)
	}
	if p.answer == nil {
		return nil
	}
	return p
}

// Begin is Do for a command that needs a preparation which cannot be undone. If the command is
// legal, and no other one is in progress, the caller prepares it, and calls Proceed or Answer, then
// or later. Until then an event may answer the command, and another Disconnect waits for the answer
// of the first.
func (id *ID) Begin(cmd Command, answer func(Event)) (p *Pending, legal bool) {
	p = id.addPending(cmd, answer)
	if !p.judge() || id.commands.joinPrepared(p) {
		return p, false
	}
	p.prepares, p.awaits = true, answeredByEvent(cmd)
	return p, true
}

// Expect records a command that the caller carries out with other commands, and answers.
func (id *ID) Expect(cmd Command, answer func(Event)) *Pending {
	p := id.addPending(cmd, answer)
	p.expected = true
	return p
}

func (id *ID) addPending(cmd Command, answer func(Event)) *Pending {
	if answer == nil {
		answer = func(Event) {}
	}
	p := &Pending{Command: cmd, id: id, answer: answer}
	id.commands.add(p)
	return p
}

// Pending returns the commands that have no answer yet, oldest first. The slice is the
// identifier's: it changes with the next Do or Answer.
func (id *ID) Pending() []*Pending { return id.commands.rows }

// Inherit moves the commands recorded by Expect from another identifier, which id replaces.
func (id *ID) Inherit(from *ID) {
	from.commands.rows = slices.DeleteFunc(from.commands.rows, func(p *Pending) bool {
		if !p.expected {
			return false
		}
		p.id = id
		id.commands.add(p)
		return true
	})
}

// Answer answers the command, and the others that wait for the same answer. It reports false if
// that was done before, or p is nil.
func (p *Pending) Answer(ev Event) bool {
	if p == nil || p.answer == nil {
		return false
	}
	answer := p.answer
	p.answer, p.awaits, p.prepares = nil, false, false
	p.id.commands.remove(p)
	answer(ev)
	for _, other := range p.with {
		own := ev
		if f, ok := ev.(*CommandFailed); ok {
			failed := *f
			failed.Command, own = other.Command, &failed
		}
		other.Answer(own)
	}
	return true
}

// Proceed ends the preparation: the device executes cmd in the place of p.Command. If the
// identifier changed during the preparation, p.Command may have become illegal; then it is refused.
func (p *Pending) Proceed(cmd Command) {
	if !p.prepares || p.answer == nil {
		return // an event was the answer
	}
	p.prepares = false
	if p.changedSinceJudged() && !p.judge() {
		return
	}
	id, driver := p.id, p.id.driver
	switch c := cmd.(type) {
	case *ResolveAddr:
		id.peer = c.Dst
	case *Listen:
		id.backlog = int32(driver.Limits().clampBacklog(c.Backlog))
	case *DestroyID:
		id.last = &lastInfo{id.Info(), id.Strangers(), id.Starved()}
		id.driver = nil
		id.commands.leaveDriver()
	}
	before := id.history.mark()
	id.enterState(p.next)
	p.awaits = answeredByEvent(cmd) // before the driver runs: the event may come from inside
	err := driver.Do(cmd)
	if errors.Is(err, ErrPending) {
		id.commands.running = p
		return
	}
	if ev := p.outcomeEvent(before, err); ev != nil {
		p.Answer(ev)
	}
}

// TakeWaiting takes the command whose answer is to come from the device, nil when there is none:
// the caller answers it, and no event does.
func (id *ID) TakeWaiting() *Pending { return id.commands.take(id.commands.waiting()) }

// judge decides whether the command is legal now, and refuses it if not. The verdict depends on the
// identifier's state, its driver and the command that the driver executes, and on nothing else.
func (p *Pending) judge() (legal bool) {
	id, op := p.id, p.Command.Op()
	next, why := id.legal(op)
	if why == nil && id.commands.isBusyFor(op) {
		text := fmt.Sprintf("%v is still in progress: wait for its answer, or send DestroyID", id.commands.running.Command.Op())
		why = &states.Reason{Text: text, Errno: states.Errno(unix.EBUSY)}
	}
	if why != nil {
		p.refuse(why)
		return false
	}
	p.judgedIn, p.next = id.state, next
	return true
}

// changedSinceJudged reports whether judge may decide differently now: events and other commands
// may have arrived while the command was prepared.
func (p *Pending) changedSinceJudged() bool {
	return p.id.driver == nil || p.id.state != p.judgedIn || p.id.commands.isBusyFor(p.Command.Op())
}
