package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Observer is notified of the events of identifiers. It is called on their loops, so it must not
// block, and with several loops it is called from several goroutines. If it panics, that is
// published (Panicked), and has no other effect.
type Observer interface {
	// Transition: id has left a state for another. States that it only passed within one command
	// are not reported.
	Transition(id *actor.PID, h Handle, from, to states.State)
	// Event: id has sent an event, to its owner or as an answer. ev must not be kept or changed.
	Event(id *actor.PID, ev cmid.Event)
	// Credit: the peer of id has consumed messages, or id's owner has.
	Credit(id *actor.PID, h Handle, c Credits)
	// Moved: a request has moved from the loop of its listener to the one where its connection will
	// live. It is called on the latter, after the identifier's actor was made.
	Moved(id *actor.PID, h Handle, from, to string)
}

// CommandObserver is an Observer that is also notified of the commands that go to the device, of
// each when it begins and when it is answered. A Dial, a Serve and a Close are reported as the
// commands that they are made of. A command that is still under way when its identifier is
// destroyed is answered then, or Closed is its end. Commands that only concern messages and memory
// (Send, Read, Write ...) are not reported.
type CommandObserver interface {
	Observer
	// Begun: cmd is about to be executed. It must not be kept or changed.
	Begun(id *actor.PID, h Handle, cmd Command)
	// Answered: ev is the answer to cmd, the same value as Begun was given. Neither may be kept or
	// changed.
	Answered(id *actor.PID, h Handle, cmd Command, ev cmid.Event)
}

// Credits are a connection's counts of messages. Send and Receive are how many more may be sent and
// received before the receiver has to consume some. Unacked and Unfreed are how many were sent and
// received, but not consumed yet. Queued wait to be sent, InFlight are at the device. On a raw
// connection only the last two are counted.
type Credits = datapath.Counts

// Panicked is published on the ActorSystem's EventStream when user code that is not an actor, such
// as an Observer, a Send's Renew or a handler of package rpc, has panicked, or on a goroutine that
// is no loop's has called runtime.Goexit. It is published by the goroutine on which it happened. A
// panic of a subscriber in response is logged. For actors there is Proto.Actor's
// actor.SupervisorEvent, and for callbacks of an event loop, eventloop.Config.OnPanic.
type Panicked struct {
	Kind, Name string // such as "rpc handler" and the method
	Value      any    // the recovered value; for runtime.Goexit an error that reports it
	Stack      []byte
}
