package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// OnLoop has an actor run on one of the runtime's loops, where the events of its identifiers reach
// it without a change of goroutine. Its Receive must not block: who does is logged (or told to
// eventloop.Config.OnStall, with the type of the message as well), and what waits for identifiers
// gives up (MayWait). Several actors are spread over the loops in turn. It is an
// option of Props, in place of a mailbox and a dispatcher:
//
//	actor.PropsFromFunc(receive, rt.OnLoop())
//
// A WithMailbox behind it takes the actor off its loop again: such an actor is refused as an owner
// (ErrMailbox).
//
// A *Received is released when Receive returns, unless it was retained. When the actor stops, the messages it has not received are
// answered as those to a dead PID are: *actor.DeadLetterResponse. The same happens to messages that come after the runtime's
// Shutdown; the actor can still be stopped then.
func (rt *Runtime) OnLoop() actor.PropsOption {
	return mailbox.Option(func() mailbox.Executor { return rt.nextLoop().exec }, plain)
}

// OffLoop has an actor run on ordinary goroutines, where Receive may block. The rest is as with
// OnLoop: a *Received is released when Receive returns, unless it was retained, also one that its
// owner has forwarded, and a stopped actor's messages are answered. A loop whose actor sends to it
// yields once before it sleeps, so that the message does not wait for Go's scheduler to notice.
func (rt *Runtime) OffLoop() actor.PropsOption {
	return mailbox.Option(func() mailbox.Executor { return rt.off }, plain)
}

// onLoop is OnLoop for one certain loop.
func onLoop(l *loop) actor.PropsOption {
	return mailbox.Option(func() mailbox.Executor { return l.exec }, plain)
}

// plain is the mailbox of an actor of the application.
var plain = &mailbox.Config{Retained: retained}

// nextLoop is the loops in turn.
func (rt *Runtime) nextLoop() *loop {
	return rt.loops[int(rt.spread.Add(1)-1)%len(rt.loops)]
}
