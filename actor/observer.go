package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Observer is told what happens to identifiers, on their loops: it must not block, and with
// several loops it is called from several goroutines. nil costs nothing.
type Observer interface {
	// Transition: id has left a state for another. States that were passed within one command are
	// not told.
	Transition(id *actor.PID, h Handle, from, to states.State)
	// Event: id has told something, to its owner or as an answer. ev must not be kept or changed.
	Event(id *actor.PID, ev cmid.Event)
	// Credit: the peer of id has consumed messages, or id's owner has.
	Credit(id *actor.PID, h Handle, c Credits)
	// Moved: a request has come from the loop of its listener to the one where its connection will
	// live. It is called there, after the identifier's actor was made.
	Moved(id *actor.PID, h Handle, from, to string)
}

// Credits are a connection's counts of messages: how many may be sent (Send) and received (Receive)
// before the other side has to consume some, how many that were sent or received are not consumed
// yet (Unacked, Unfreed), how many wait (Queued) or are the device's (InFlight). On a raw
// connection only the last two are kept.
type Credits = datapath.Counts

// Panicked is published on the ActorSystem's EventStream when code of the user's that is no actor
// has panicked, or has called runtime.Goexit, and what has called it has gone on without it: a
// Send's Renew, a handler of package rpc. It is published where that happened, by the goroutine
// that did it. What actors do Proto.Actor publishes (actor.SupervisorEvent), and what an event loop
// calls is its configuration's (eventloop.Config.OnPanic).
type Panicked struct {
	Kind, Name string // such as "rpc handler" and the method
	Value      any    // what recover has returned; for runtime.Goexit an error that says so
	Stack      []byte
}
