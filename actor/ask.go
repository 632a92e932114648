package actor

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Ask sends a command and waits for its answer. It is for main and for tests, which may block. An
// answer that is a Failure is returned as the error. If ctx ends before the answer arrives, the
// identifier is destroyed, because there is no other way to cancel, and the error is ctx's cause:
// nothing that the command made is left. A Dial without Timeout shares the time until ctx's
// deadline among the addresses of its name. For an identifier that no longer exists the error is
// ENOENT. On the goroutine of a loop, which might be needed for the answer, it is
// eventloop.ErrOnLoop.
func Ask[A cmid.Event](ctx context.Context, rt *Runtime, id *actor.PID, c cmid.Command) (A, error) {
	var none A
	if err := eventloop.MayWait(); err != nil {
		return none, fmt.Errorf("rdma: Ask: %w", err)
	}
	if id == nil || c == nil || isNilCommand(c) {
		return none, fmt.Errorf("rdma: Ask: the identifier or the command is nil: %w", unix.EINVAL)
	}
	p := &asking{registry: rt.sys.ProcessRegistry, answer: make(chan any, 1)}
	p.pid, _ = p.registry.Add(p, "ask"+p.registry.NextID())
	rt.sys.Root.RequestWithCustomSender(id, withTimeout(ctx, c), p.pid)
	var ev any
	select {
	case ev = <-p.answer:
		rt.Scheduler().Resume()
	case <-ctx.Done():
		rt.Scheduler().Resume()
		select {
		case ev = <-p.answer: // both are ready: there is nothing to cancel
		default:
			cause := context.Cause(ctx)
			rt.sys.Root.Send(id, &cancelled{cause})
			return none, cause // p stays until the answer arrives: every command has one
		}
	}
	switch ev := ev.(type) {
	case A:
		return ev, nil
	case Failure:
		restoreCommand(ev, c)
		return none, ev
	case *actor.DeadLetterResponse:
		return none, fmt.Errorf("rdma: %s: the identifier is gone: %w", opName(c), unix.ENOENT)
	default:
		return none, fmt.Errorf("rdma: %s was answered with %T, want %T: %w", opName(c), ev, none, unix.EINVAL)
	}
}

// withTimeout returns c, and for a Dial without Timeout a copy with ctx's. The copy's Timeout
// exceeds ctx's by slack, so that ctx ends the wait.
func withTimeout(ctx context.Context, c cmid.Command) cmid.Command {
	d, ok := c.(*Dial)
	by, bounded := ctx.Deadline()
	if !ok || d == nil || d.Timeout > 0 || !bounded {
		return c
	}
	own := *d
	own.Timeout = max(time.Until(by), 0) + slack
	return &own
}

// asking is the process that receives the answer.
type asking struct {
	registry *actor.ProcessRegistryValue
	pid      *actor.PID
	answer   chan any
}

func (p *asking) SendUserMessage(_ *actor.PID, msg any) {
	p.registry.Remove(p.pid)
	select {
	case p.answer <- actor.UnwrapEnvelopeMessage(msg):
	default:
	}
}

func (p *asking) SendSystemMessage(*actor.PID, any) {}

func (p *asking) Stop(*actor.PID) { p.registry.Remove(p.pid) }

// Stalled returns a channel that is closed when a loop of one of the ActorSystem's runtimes has
// stood still for a second (eventloop.Config.StallAfter). Code that waits for the runtime should
// wait for this channel too, and then call eventloop.MayWait, because the loop may be standing
// still for that very wait. To continue waiting, call Stalled again: the next channel is closed
// when the loop has stood still for twice as long, and so on. Any goroutine may call it.
func (rt *Runtime) Stalled() <-chan struct{} { return rt.registry.Alarm().C() }
