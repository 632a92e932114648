package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// endpoint has the facts that all parts of an identifier use: where it lives, its objects in the
// device, and how far its life has advanced.
type endpoint struct {
	l   *loop
	pid *actor.PID
	box *mailbox.Mailbox
	cfg *IDConfig // shared with others: not changed

	id       *cmid.ID       // nil until Started, and when it could not be made
	conn     *datapath.Conn // nil: there is no queue pair, or the owner has made it
	listened *listening     // a listener's state
	known    *knownID       // other goroutines' view; nil until the loop has the identifier
	life     lifetime

	peer    peerTerms // from the request that created it; zero: no request did
	who     string    // identity of a secured connection's peer, once it is known
	reading bool      // this side makes Reads: the ConnParam and the peer's request allow it
	served  bool      // this side serves Reads, as above

	// Of other parts, and here because a struct that ends with a byte is padded to a word.
	lastState  states.State // outbox: the last one that was reported
	notifiable bool         // tenancy: the peer may write, perhaps before there is a connection
	lined      bool         // tenancy: an actor counts the sent messages (Line)
	counted    bool         // in Runtime.count
}

// eventBase returns the part of an event that names the identifier.
func (e *endpoint) eventBase() EventBase {
	if e.id == nil {
		return EventBase{}
	}
	return EventBase{ID: e.id.Handle()}
}

// isEnding reports whether it is being destroyed, or was.
func (e *endpoint) isEnding() bool { return e.life.stage != lifeAlive }

// isGone reports whether the device has nothing of it that its actor waits for.
func (e *endpoint) isGone() bool { return e.life.stage >= lifeGone }

// pendingCommands returns the commands that have no answer yet, except for those that wait for the
// end.
func (e *endpoint) pendingCommands() []*cmid.Pending {
	if e.id == nil {
		return nil
	}
	return e.id.Pending()
}

// isLegal reports whether the state machine allows a command now.
func (e *endpoint) isLegal(op states.Op) bool {
	_, v := states.Step(e.id.Flavor(), e.id.State(), states.Requested(op))
	return v == states.Allow
}

// leavesQueuePair reports whether the owner creates the queue pair.
func (e *endpoint) leavesQueuePair() bool {
	return e.id.Datagram() || e.cfg.Manual && e.id.Flavor()&states.IWARP == 0
}

// listenerCounts returns a listener's counters. The first call creates them.
func (e *endpoint) listenerCounts() *listening {
	if e.listened == nil {
		e.listened = new(listening)
	}
	return e.listened
}

// connectionConfig returns the configuration of a listener's connections.
func (e *endpoint) connectionConfig() *IDConfig {
	l := e.listenerCounts()
	if l.cfg == nil {
		l.cfg = e.cfg.forConnections()
	}
	return l.cfg
}

func (e *endpoint) logKeys(op fmt.Stringer, more ...any) []any {
	in := e.id.Info()
	return append([]any{
		"id", uint64(e.id.Handle()), "state", e.id.State().String(), "op", op.String(),
		"local", in.Local.String(), "peer", in.Peer.String(), "device", in.Device,
	}, more...)
}

// closeAwaits returns the step of the peer that a Close waits for, as a participle.
func (e *endpoint) closeAwaits() string {
	switch c := e.conn; {
	case c == nil || c.Leaving() || e.id.State() != states.Connected:
		return "answered the disconnect" // all else is done
	case c.Acknowledged():
		return "consumed everything"
	}
	return "taken everything"
}

func (e *endpoint) listenerInfo() ListenerInfo {
	i := *e.listened.listenerInfo()
	i.Strangers, i.Starved = e.id.Strangers(), e.id.Starved()
	return i
}
