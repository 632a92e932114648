package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// OnLoop makes an actor run on one of the runtime's loops, where the events of its identifiers
// reach it without a change of goroutine. Its Receive must not block. An actor that does is logged,
// or reported to eventloop.Config.OnStall, which also gets the type of the message; and calls that
// wait for identifiers give up in that time (eventloop.MayWait). Several actors are spread over the
// loops in turn. It is an option of Props, in place of a mailbox and a dispatcher:
//
//	actor.PropsFromFunc(receive, rt.OnLoop())
//
// An actor that fails when it is asked to stop is stopped without its code, and so is one that is
// restarted more than ten times in 10 s without having received a message, whatever its supervisor
// decides: it would occupy its loop without a pause. Its messages are answered, and its watchers
// are notified.
//
// A WithMailbox behind it takes the actor off its loop again: such an actor is refused as an owner
// (ErrMailbox).
//
// When the actor stops, the messages it has not received are answered as those to a dead PID are:
// *actor.DeadLetterResponse. The same happens to messages that arrive after the runtime's Shutdown;
// the actor can still be stopped then.
func (rt *Runtime) OnLoop() actor.PropsOption {
	return mailbox.Option(func() mailbox.Executor { return rt.nextLoop().exec }, plain)
}

// OffLoop makes an actor run on ordinary goroutines, where Receive may block. The rest is as with
// OnLoop: a [Received], also a forwarded one, is valid until Receive returns, and a stopped actor's
// messages are answered. After an actor on a loop has sent to such
// an actor, the loop yields before it sleeps, so that the message does not wait until Go's
// scheduler notices it.
func (rt *Runtime) OffLoop() actor.PropsOption {
	return mailbox.Option(func() mailbox.Executor { return rt.off }, plain)
}

// OnLoopOf is OnLoop, on the loop of another OnLoop actor, so that the two need not wake each
// other's loop. For any other PID, or nil, it is OnLoop.
func (rt *Runtime) OnLoopOf(pid *actor.PID) actor.PropsOption {
	if l := rt.loopOf(rt.registry.Find(pid)); l != nil {
		return onLoop(l)
	}
	return rt.OnLoop()
}

// nextLoop returns the loops in turn, except for those that a callback has ended.
func (rt *Runtime) nextLoop() (l *loop) {
	for range rt.loops {
		if l = rt.loops[int(rt.spawned.Add(1)-1)%len(rt.loops)]; l.failErr() == nil {
			break
		}
	}
	return l
}

// After sends msg to the calling actor itself when d has passed. If d is 0 or less it sends msg
// soon, but never inside the call. For an OnLoop actor it uses the loop's timers and clock (virtual
// in tests), for every other one time.AfterFunc. It is called in Receive, and so is stop, after
// which the message is not sent, though it may already be waiting in the mailbox. A restarted actor
// gets the message. One that has stopped does not, and there is no dead letter.
func After(ctx actor.Context, d time.Duration, msg any) (stop func()) {
	return mailbox.After(ctx, d, msg)
}
