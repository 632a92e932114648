package actor

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Ask sends a command and waits for its answer: the blocking edge, for main and for tests. A failing answer is the error, a
// Failure. When ctx ends before the answer came, the identifier is destroyed, since there is no other cancel, and the error is
// ctx's cause. A dead identifier is ENOENT. On a loop's goroutine, which the answer needs, it is eventloop.ErrOnLoop.
func Ask[A cmid.Event](ctx context.Context, rt *Runtime, id *actor.PID, c cmid.Command) (A, error) {
	var none A
	if rt.onLoop() {
		return none, fmt.Errorf("rdma: Ask: %w", eventloop.ErrOnLoop)
	}
	p := &asking{registry: rt.sys.ProcessRegistry, answer: make(chan any, 1)}
	p.pid, _ = p.registry.Add(p, "ask"+p.registry.NextID())
	rt.sys.Root.RequestWithCustomSender(id, c, p.pid)
	select {
	case ev := <-p.answer:
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
	case <-ctx.Done():
		cause := context.Cause(ctx)
		rt.sys.Root.Send(id, &cancelled{c, cause})
		return none, cause // p stays until the answer has come: every command has one
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

// onLoop reports whether the caller runs on one of the loops.
func (rt *Runtime) onLoop() bool {
	for _, l := range rt.loops {
		if l.el.OnLoop() {
			return true
		}
	}
	return false
}
