package oracle

import (
	"strings"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// Identifiers judges each identifier by the state machine, and by the promises to its owner. The
// zero value, with Fail set, is empty.
type Identifiers struct {
	Fail Fail
	// Secured: owners learn of peers only when these are authenticated.
	Secured bool

	ids       map[string]*identifier
	order     []string
	questions []*Question
}

// identifier is the known state of an identifier.
type identifier struct {
	flavor    states.Flavor
	handle    uint64
	from, now states.State
	manual    bool
	orphan    bool // the owner has stopped
	made      bool // the loop has started it
	closed    bool // Closed was sent
	moot      bool

	requested  bool        // created by a request of a peer that was not authenticated then
	introduced bool        // the owner was sent the request
	listener   *identifier // of a child

	all    tally             // events that its owners received
	owners map[string]*heard // events that each of them received
}

// tally counts events that must not come twice.
type tally struct{ established, disconnected, removed, closed int }

// countEnds counts the ends.
func (t *tally) countEnds() int { return t.disconnected + t.removed }

// heard counts the events of an identifier that an owner received.
type heard struct{ tally }

// Question is a command, with its answers.
type Question struct {
	id, command string
	asked       time.Duration
	answers     []string
	moot        bool
}

// Made enters an identifier. flavor is that of its device; whether a device is attached need not be
// known. child: it was created by a request.
func (l *Identifiers) Made(id string, flavor states.Flavor, child bool) {
	i := l.findOrAdd(id)
	i.made, i.flavor = true, flavor&^states.Device
	if child {
		i.now = states.ConnectRequested
	}
}

// Manual enters that the identifier's owner drives its queue pair.
func (l *Identifiers) Manual(id string) { l.findOrAdd(id).manual = true }

// Orphan enters that the identifier's owner has stopped, and may not have received its events.
func (l *Identifiers) Orphan(id string) { l.findOrAdd(id).orphan = true }

// Child enters which listener's request created a child. The listener's owner is also the child's,
// unless another one has received events of the child.
func (l *Identifiers) Child(id, listener string) { l.findOrAdd(id).listener = l.findOrAdd(listener) }

// isOrphaned reports whether the identifier's owner has stopped.
func (i *identifier) isOrphaned() bool {
	return i.orphan || i.listener != nil && i.listener.orphan && len(i.owners) == 0
}

func (l *Identifiers) findOrAdd(name string) *identifier {
	i := l.ids[name]
	if i == nil {
		if l.ids == nil {
			l.ids = make(map[string]*identifier)
		}
		i = &identifier{owners: make(map[string]*heard)}
		l.ids[name] = i
		l.order = append(l.order, name)
	}
	return i
}

// Transition enters a state transition of an identifier. One actor may use several identifiers with
// different handles: Dial takes a new one for each address.
func (l *Identifiers) Transition(now time.Duration, id string, handle uint64, from, to states.State) {
	i := l.findOrAdd(id)
	if i.moot {
		return
	}
	if l.Secured && i.handle == 0 && from == states.ConnectRequested {
		i.now, i.requested = from, true // its request is reported when its peer is authenticated
	}
	switch {
	case i.closed:
		l.Fail("%v: %s goes from %v to %v after Closed", now, id, from, to)
	case i.handle == 0 || i.handle == handle:
		if from != i.now {
			l.Fail("%v: %s goes from %v to %v, and was in %v", now, id, from, to, i.now)
		}
		if !i.canReach(from, to) {
			l.Fail("%v: %s goes from %v to %v, which no command and no event does", now, id, from, to)
		}
	default: // a new identifier that replaces a failed one
	}
	i.handle, i.from, i.now = handle, from, to
}

// canReach reports whether at most two inputs lead from one state to another: a state that is
// passed within one command is not reported.
func (i *identifier) canReach(from, to states.State) bool {
	r := reach()
	return r[i.flavor][from][to] || r[i.flavor|states.Device][from][to]
}

// reach returns the table for canReach. The first of the two inputs may attach a device.
var reach = sync.OnceValue(func() (r [states.NumFlavors][states.NumStates][states.NumStates]bool) {
	step := func(f states.Flavor, from states.State, do func(to states.State)) {
		for in := range states.Input(states.NumInputs) {
			if to, v := states.Step(f, from, in); v == states.Allow {
				do(to)
			}
		}
	}
	for f := range states.Flavor(states.NumFlavors) {
		for s := range states.State(states.NumStates) {
			step(f, s, func(by states.State) {
				r[f][s][by] = true
				step(f|states.Device, by, func(to states.State) { r[f][s][to] = true })
			})
		}
	}
	return r
})

// Event enters that an identifier has sent an event to some actor. An event of the device must be
// one that the state machine reports in the identifier's current or previous state.
func (l *Identifiers) Event(now time.Duration, id string, kind states.Kind) {
	i := l.findOrAdd(id)
	if i.moot {
		return
	}
	if i.closed && kind != states.KindClosed {
		l.Fail("%v: %s sends %v after Closed", now, id, kind)
	}
	i.closed = i.closed || kind == states.KindClosed
	i.introduced = i.introduced || kind == states.KindConnectRequest
	if int(kind) < states.NumKernelKinds && !i.mayReport(kind) && (!l.Secured || !i.deviceConnected(kind)) {
		l.Fail("%v: %s sends %v in %v (from %v), where the state machine has none", now, id, kind, i.now, i.from)
	}
}

// deviceConnected reports whether the device has already connected the identifier. In a secured
// world owners learn of requests, answers and rejections after that. A disconnect by either side
// before the dial's answer is reported as an error.
func (i *identifier) deviceConnected(kind states.Kind) bool {
	return i.now == states.Connected || i.from == states.Connected ||
		(i.from == states.Disconnecting || i.from == states.PeerDisconnected) && kind == states.KindConnectError
}

func (i *identifier) mayReport(kind states.Kind) bool {
	if kind == states.KindConnectRequest { // the table has it at the listener, where it arises
		return i.now == states.ConnectRequested
	}
	for _, f := range [...]states.Flavor{i.flavor, i.flavor | states.Device} {
		for _, s := range [...]states.State{i.now, i.from} {
			if _, v := states.Step(f, s, states.Occurred(kind)); v == states.Allow {
				return true
			}
		}
	}
	// an identifier that has ended may still report the cause that was found first
	return i.now == states.Destroying || i.now == states.Failed
}

// Heard enters an event of the identifier that an owner has received, in the order of receipt.
// Answers to the owner's commands count, too.
func (l *Identifiers) Heard(now time.Duration, owner, id string, kind states.Kind) {
	i := l.findOrAdd(id)
	if i.moot {
		return
	}
	h := i.owners[owner]
	if h == nil {
		h = &heard{}
		i.owners[owner] = h
	}
	if h.closed > 0 {
		l.Fail("%v: %s gets %v from %s after Closed", now, owner, kind, id)
	}
	i.all.countEvent(kind)
	h.countEvent(kind)
	switch kind {
	case states.KindEstablished:
		if i.all.established > 1 {
			l.Fail("%v: %s gets Established from %s, which it has sent before", now, owner, id)
		}
		if h.countEnds() > 0 {
			l.Fail("%v: %s gets Established from %s after its end", now, owner, id)
		}
	case states.KindDisconnected, states.KindDeviceRemoval:
		twice := i.all.countEnds() > 1
		if i.manual { // also learns of a removal that follows
			twice = i.all.disconnected > 1 || i.all.removed > 1
		}
		if twice {
			l.Fail("%v: %s gets %v from %s, which has reported its end before", now, owner, kind, id)
		}
	case states.KindReceived:
		if h.countEnds() > 0 {
			l.Fail("%v: %s gets a message from %s after its end", now, owner, id)
		}
	case states.KindClosed:
		if i.all.closed > 1 {
			l.Fail("%v: %s gets Closed from %s, which it has sent before", now, owner, id)
		}
	}
}

func (t *tally) countEvent(kind states.Kind) {
	switch kind {
	case states.KindEstablished:
		t.established++
	case states.KindDisconnected:
		t.disconnected++
	case states.KindDeviceRemoval:
		t.removed++
	case states.KindClosed:
		t.closed++
	}
}

// Asked enters a command. command is its name, for the verdicts.
func (l *Identifiers) Asked(now time.Duration, id, command string) *Question {
	q := &Question{id: id, command: command, asked: now}
	l.questions = append(l.questions, q)
	return q
}

// Answered enters an answer. what is its name, for the verdicts.
func (l *Identifiers) Answered(now time.Duration, q *Question, what string) {
	if q.moot {
		return
	}
	q.answers = append(q.answers, what)
	if len(q.answers) > 1 {
		l.Fail("%v: the %s that %s got at %v is answered more than once: %s", now, q.command, q.id, q.asked, firstFew(q.answers))
	}
}

// Open reports whether a command has no answer yet.
func (q *Question) Open() bool { return len(q.answers) == 0 && !q.moot }

// MootAll enters that nothing more is expected of all identifiers whose names have the prefix,
// because their process was killed.
func (l *Identifiers) MootAll(prefix string) {
	for _, name := range l.order {
		if strings.HasPrefix(name, prefix) {
			l.ids[name].moot = true
		}
	}
	for _, q := range l.questions {
		q.moot = q.moot || strings.HasPrefix(q.id, prefix)
	}
}

// Unanswered lists the commands without an answer that were sent before a time.
func (l *Identifiers) Unanswered(before time.Duration) (all []string) {
	for _, q := range l.questions {
		if q.Open() && q.asked < before {
			all = append(all, q.command+" to "+q.id)
		}
	}
	return all
}

// End judges the end of the world. Each identifier that had an owner must be Closed, and each
// command answered.
func (l *Identifiers) End(now time.Duration) {
	for _, name := range l.order {
		i := l.ids[name]
		switch {
		case i.moot:
		case !i.closed:
			l.Fail("%v: %s was never Closed; it was last in %v", now, name, i.now)
		case l.Secured && i.requested && !i.introduced: // no owner may learn of it
			if len(i.owners) > 0 {
				l.Fail("%v: owners have heard of %s, whose peer was not authenticated", now, name)
			}
		case i.all.closed == 0 && !i.isOrphaned():
			l.Fail("%v: the owner of %s has not got its Closed", now, name)
		}
	}
	for _, q := range l.questions {
		if q.Open() {
			l.Fail("%v: the %s that %s got at %v was never answered", now, q.command, q.id, q.asked)
		}
	}
}

// Living counts the identifiers whose names have the prefix that were made and not Closed. Until
// its loop has started an identifier, it is unknown whether the runtime has room for it.
func (l *Identifiers) Living(prefix string) (n int) {
	for _, name := range l.order {
		if i := l.ids[name]; i.made && !i.closed && !i.moot && strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}

// Open counts the unanswered commands of an identifier.
func (l *Identifiers) Open(id string) (n int) {
	for _, q := range l.questions {
		if q.id == id && q.Open() {
			n++
		}
	}
	return n
}
