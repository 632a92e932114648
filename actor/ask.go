package actor

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Ask sends a command and waits for its answer: the blocking edge, for main and for tests. A
// failing answer is the error, a Failure. When ctx ends before the answer came, the identifier is
// destroyed, since there is no other cancel, and the error is ctx's cause: so of what the command
// has made nothing is left. A dead identifier is ENOENT. On the goroutine of a loop, which the
// answer may need, it is eventloop.ErrOnLoop.
func Ask[A cmid.Event](ctx context.Context, rt *Runtime, id *actor.PID, c cmid.Command) (A, error) {
	var none A
	if err := eventloop.MayWait(); err != nil {
		return none, fmt.Errorf("rdma: Ask: %w", err)
	}
	p := &asking{registry: rt.sys.ProcessRegistry, answer: make(chan any, 1)}
	p.pid, _ = p.registry.Add(p, "ask"+p.registry.NextID())
	rt.sys.Root.RequestWithCustomSender(id, c, p.pid)
	var ev any
	select {
	case ev = <-p.answer:
	case <-ctx.Done():
		select {
		case ev = <-p.answer: // both: there is nothing to cancel
		default:
			cause := context.Cause(ctx)
			rt.sys.Root.Send(id, &cancelled{cause})
			return none, cause // p stays until the answer has come: every command has one
		}
	}
	switch ev := ev.(type) {
	case A:
		return ev, nil
	case Failure:
		return none, ev
	case *actor.DeadLetterResponse:
		return none, fmt.Errorf("rdma: %s: the identifier is gone: %w", opName(c), unix.ENOENT)
	default:
		return none, fmt.Errorf("rdma: %s was answered with %T, want %T: %w", opName(c), ev, none, unix.EINVAL)
	}
}

// asking is the process that gets the answer.
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

// Stalled is closed when a loop of one of the ActorSystem's runtimes stands still
// (eventloop.Config.StallAfter: a second), and when it has for twice as long, and so on. Whoever
// waits for the runtime waits for it too, and asks eventloop.MayWait then: the loop may be
// standing still for that very wait. Who waits on takes the next one. Any goroutine.
func (rt *Runtime) Stalled() <-chan struct{} { return rt.registry.Alarm().C() }
