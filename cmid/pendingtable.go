package cmid

import (
	"slices"

	"github.com/rdmactor/rdmactor/states"
)

// pendingTable has an identifier's commands that have no answer yet.
type pendingTable struct {
	rows    []*Pending // oldest first
	running *Pending   // the driver returned ErrPending and has not called Done
}

func (t *pendingTable) add(p *Pending) { t.rows = append(t.rows, p) }

func (t *pendingTable) remove(p *Pending) {
	if i := slices.Index(t.rows, p); i >= 0 {
		t.rows = slices.Delete(t.rows, i, i+1)
	}
}

// isBusyFor reports whether the driver still executes a command that op has to wait for.
func (t *pendingTable) isBusyFor(op states.Op) bool {
	return t.running != nil && op != states.OpDestroyID
}

// takeRunning takes the command that the driver had answered with ErrPending.
func (t *pendingTable) takeRunning() (p *Pending) {
	p, t.running = t.running, nil
	return p
}

// leaveDriver notes that the driver answers no command from now on.
func (t *pendingTable) leaveDriver() {
	t.running = nil
	for _, p := range t.rows {
		p.awaits = false // no event, and no Done
	}
}

// joinPrepared makes a Disconnect wait for the answer of another one that is being prepared. False:
// there is none.
func (t *pendingTable) joinPrepared(p *Pending) bool {
	if p.Command.Op() != states.OpDisconnect {
		return false
	}
	for _, other := range t.rows {
		if other.prepares && other.Command.Op() == states.OpDisconnect {
			other.with = append(other.with, p)
			return true
		}
	}
	return false
}

// waiting returns the command whose answer is to come from the device.
func (t *pendingTable) waiting() *Pending {
	if p := t.running; p != nil && p.answer != nil {
		return p
	}
	for _, p := range slices.Backward(t.rows) {
		if _, join := p.Command.(*JoinMulticast); p.awaits && !join {
			return p
		}
	}
	return t.waitingJoin(anyJoin)
}

// waitingJoin returns the oldest join that waits for its event and matches.
func (t *pendingTable) waitingJoin(matches func(*JoinMulticast) bool) *Pending {
	for _, p := range t.rows {
		if j, ok := p.Command.(*JoinMulticast); ok && p.awaits && matches(j) {
			return p
		}
	}
	return nil
}

func anyJoin(*JoinMulticast) bool { return true }

// take marks p as answered by the present event or by the caller. For a Disconnect it also takes
// all others that wait: one event answers every Disconnect.
func (t *pendingTable) take(p *Pending) *Pending {
	if p == nil || !p.awaits {
		return p
	}
	p.awaits = false
	for _, other := range t.rows {
		if other.awaits && other.Command.Op() == p.Command.Op() && p.Command.Op() == states.OpDisconnect {
			other.awaits = false
			p.with = append(p.with, other)
		}
	}
	return p
}

// takeAnsweredBy takes the command that an event answers.
func (t *pendingTable) takeAnsweredBy(ev *DriverEvent) *Pending {
	k := ev.Kind
	if k == states.KindMulticastJoin || k == states.KindMulticastError {
		return t.take(t.waitingJoin(func(j *JoinMulticast) bool { return j.Addr.Equal(ev.Addr) }))
	}
	for _, p := range slices.Backward(t.rows) {
		if p.awaits && slices.Contains(answers[p.Command.Op()], k) {
			return t.take(p)
		}
	}
	return nil
}
