package cmid

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// ID is an rdma_cm_id: one identifier, its state and its recent history. It belongs to the
// goroutine of its channel's loop.
type ID struct {
	// Context is whatever its owner wants to find again from an event.
	Context any

	ch       *Channel
	driver   DriverID // nil once it was asked to destroy the identifier, and between two channels
	handle   Handle
	ps       PortSpace
	flavor   states.Flavor
	state    states.State
	hadQP    bool
	backlog  int32
	peer     Addr // the requested destination, until the device knows the peer
	born     time.Time
	history  history
	commands pendingTable
	last     *lastInfo // as of its destruction; nil: it was not destroyed
}

// lastInfo is what remains known of a destroyed identifier.
type lastInfo struct {
	Info
	strangers, starved uint64
}

// Handle names the identifier; it is never reused.
func (id *ID) Handle() Handle { return id.handle }

// State returns the identifier's state.
func (id *ID) State() states.State { return id.state }

// Flavor returns the properties that the state machine depends on besides the state.
func (id *ID) Flavor() states.Flavor {
	if id.driver == nil {
		return id.flavor
	}
	f := id.flavor | id.driver.Flavor()
	if id.driver.Device() != nil {
		f |= states.Device
	}
	return f
}

// Limits returns the limits of the identifier's transport, as far as they are known: see
// DriverID.Limits. For a destroyed identifier they are zero.
func (id *ID) Limits() Limits {
	if id.driver == nil {
		return Limits{}
	}
	return id.driver.Limits()
}

// PortSpace returns the identifier's port space.
func (id *ID) PortSpace() PortSpace { return id.ps }

// Datagram reports whether it exchanges datagrams (UD) instead of being connected (RC).
func (id *ID) Datagram() bool { return id.flavor&states.UD != 0 }

// Age returns the time since the identifier was created.
func (id *ID) Age() time.Duration { return id.ch.loop.Now().Sub(id.born) }

// InState returns the time in the present state.
func (id *ID) InState() time.Duration { return id.Age() - id.history.last().At }

// Info returns the addresses and the device; after destruction, the last ones.
func (id *ID) Info() Info {
	switch {
	case id.last != nil:
		return id.last.Info
	case id.driver == nil:
		return Info{Peer: id.peer}
	}
	in := id.driver.Info()
	if in.Peer.IsZero() {
		in.Peer = id.peer
	}
	return in
}

// Strangers is Channel.Strangers for this listener alone; after destruction, the last count.
func (id *ID) Strangers() uint64 {
	if id.last != nil {
		return id.last.strangers
	}
	if s, ok := id.driver.(StrangerCounter); ok {
		return s.Strangers()
	}
	return 0
}

// Starved returns how often this listener has paused because the process had no file descriptors,
// or no memory, to accept a connection; after destruction, the last count.
func (id *ID) Starved() uint64 {
	if id.last != nil {
		return id.last.starved
	}
	if s, ok := id.driver.(StarvedCounter); ok {
		return s.Starved()
	}
	return 0
}

// Device returns the device that the identifier is attached to, nil without one.
func (id *ID) Device() verbs.Device {
	if id.driver == nil {
		return nil
	}
	return id.driver.Device()
}

// CreateQP is rdma_create_qp(3): it ties a queue pair to the identifier, which destroys it. Needed
// before Connect and Accept.
func (id *ID) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	if err := id.judgeCall(states.OpCreateQP, "create_qp"); err != nil {
		return nil, err
	}
	qp, err := id.driver.CreateQP(attr)
	if err != nil {
		return nil, fmt.Errorf("create_qp (id %d, %v): %w", id.handle, id.state, err)
	}
	id.hadQP = true
	return qp, nil
}

// History returns the last transitions, oldest first.
func (id *ID) History() []Transition { return id.history.transitions() }

// enterState moves to s.
func (id *ID) enterState(s states.State) {
	if s != id.state {
		id.state = s
		id.history.add(Transition{State: s, At: id.Age()})
	}
}

// closedEvent forgets the identifier and builds the answer to DestroyID. err is not nil if the
// device still holds the identifier.
func (id *ID) closedEvent(err error) Event {
	id.ch.removeID(id)
	return &Closed{EventBase: EventBase{ID: id.handle}, Err: err}
}

// refusal is an errno with the state machine's own words.
type refusal struct {
	reason string
	errno  unix.Errno
}

func (r *refusal) Error() string { return r.reason }
func (r *refusal) Unwrap() error { return r.errno }

func (id *ID) failureBase(cmd Command, err error) FailureBase {
	in := id.Info()
	f := FailureBase{
		EventBase: EventBase{ID: id.handle}, Command: cmd, State: id.state,
		Local: in.Local, Peer: in.Peer, Err: err, History: id.History(),
	}
	if b, ok := cmd.(*BindAddr); ok {
		f.Local = b.Addr
	}
	if cmd != nil {
		f.Op = opName(cmd.Op())
		f.Remedy = errnoRemedy(cmd.Op(), err)
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		f.Status = -int32(errno)
	}
	return f
}

// legal returns the state that op leads to, or why it is illegal now.
func (id *ID) legal(op states.Op) (next states.State, why *states.Reason) {
	switch {
	case id.driver == nil && id.last == nil:
		return 0, &states.Reason{Text: "the identifier is on its way to another loop, or its channel was closed", Errno: states.ENOENT}
	case id.driver == nil && (id.state != states.Destroying || id.commands.running == nil):
		return 0, &states.Reason{Text: "the identifier is destroyed", Errno: states.ENOENT}
	}
	in, flavor := states.Requested(op), id.Flavor()
	next, v := states.Step(flavor, id.state, in)
	if v == states.Allow && id.driver != nil {
		return next, nil
	}
	reason := states.Why(flavor, id.state, in)
	return 0, &reason
}

// judgeCall returns an error if a call that is not a Command is illegal now. call is its name in
// messages.
func (id *ID) judgeCall(op states.Op, call string) error {
	_, why := id.legal(op)
	if why == nil {
		return nil
	}
	f := id.failureBase(nil, &refusal{why.Text, unix.Errno(why.Errno)})
	f.Op, f.Legal = call, why.Legal
	return &CommandFailed{f}
}

func (id *ID) callFailed(call string, err error) error {
	f := id.failureBase(nil, err)
	f.Op = call
	return &CommandFailed{f}
}
