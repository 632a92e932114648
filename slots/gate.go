package slots

import (
	"context"
	"fmt"
	"sync"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// gate lets goroutines wait for a condition. The lock that guards the condition guards the gate,
// too. A token wakes one goroutine, which calls wakeOne again if it leaves something for the next.
type gate struct {
	tokens  chan struct{}
	waiting int
}

func newGate() gate { return gate{tokens: make(chan struct{}, 1)} }

// wakeOne lets one of the waiting goroutines check again. It reports whether there is one.
func (g *gate) wakeOne() (woke bool) {
	if g.waiting == 0 {
		return false
	}
	select {
	case g.tokens <- struct{}{}:
	default:
	}
	return true
}

// wait returns when the caller should check again, or why it must not wait any longer. It is called
// with mu locked, and unlocks it while it waits.
func (g *gate) wait(ctx context.Context, rt *rdma.Runtime, mu *sync.Mutex) error {
	g.waiting++
	mu.Unlock()
	defer func() { // also when a simulation ends the goroutine
		mu.Lock()
		g.waiting--
	}()
	return awaitToken(ctx, rt, g.tokens)
}

// awaitToken waits for a token. A loop's goroutine must not wait: when that is noticed, the error
// is eventloop.ErrOnLoop.
func awaitToken(ctx context.Context, rt *rdma.Runtime, tokens <-chan struct{}) error {
	for {
		select {
		case <-tokens:
			rt.Scheduler().Resume()
			return nil
		case <-ctx.Done():
			rt.Scheduler().Resume()
			return fmt.Errorf("slots: %w", context.Cause(ctx))
		case <-rt.Stalled():
			rt.Scheduler().Resume()
			if err := eventloop.MayWait(); err != nil {
				return fmt.Errorf("slots: %w", err)
			}
		}
	}
}
