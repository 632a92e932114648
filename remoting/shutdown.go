package remoting

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Shutdown ends the node. It accepts nothing more, neither from this actor system, where it becomes
// dead letters, nor from other nodes. What was accepted is still sent, until ctx ends, also to
// peers that the node is about to connect to, but not to those that cannot be reached. Then
// everything that waits is answered: futures get *Unknown, or ErrDeadLetter if their requests were
// not sent, and watchers AddressTerminated. If it is not known whether the peers have received all
// that was sent, that is an error; *Disconnected counts it for each. The actor system and the
// runtime are the caller's; shut the runtime down afterwards. Any goroutine but a loop's. Further
// calls wait for the first and return its error.
func (n *Node) Shutdown(ctx context.Context) error {
	if err := eventloop.MayWait(); err != nil {
		return fmt.Errorf("remoting: Shutdown: %w", err)
	}
	n.shutdown.once.Do(func() {
		n.shutdown.err = n.shutDown(ctx)
		close(n.shutdown.done)
	})
	<-n.shutdown.done
	n.rt.Scheduler().Resume()
	return n.shutdown.err
}

// farewell is how much before the context's end what has not been sent is given up.
const farewell = 100 * time.Millisecond

// lastWord is how long loops may take to stop links and the listener, which waits for no peer. A
// loop does not get on while code of the user's blocks it.
const lastWord = 2 * time.Second

func (n *Node) shutDown(ctx context.Context) error {
	n.down.Store(true)
	timeout := time.Hour
	if due, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(due)-farewell, time.Millisecond)
	}
	n.close(&leave{timeout})
	sent := n.rt.Scheduler().Await(n.alone, ctx.Done())
	if !sent {
		n.stopLinks()
	}
	n.listener.Stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	ended := n.rt.Scheduler().Await(n.alone, last.Done()) && n.rt.Scheduler().Await(n.listener.Gone(), last.Done())
	reported := n.rt.Scheduler().Await(n.idle, ctx.Done())
	switch {
	case !ended:
		return fmt.Errorf("remoting: a loop does not get on: %w", context.Cause(last))
	case !sent || n.unsent.Load():
		return fmt.Errorf("remoting: not all was sent: %w", cmp.Or(context.Cause(ctx), error(unix.ETIMEDOUT)))
	case n.unconfirmed.Load() > 0:
		return fmt.Errorf("remoting: %d messages were sent, and it is not known whether their nodes received them: %w",
			n.unconfirmed.Load(), cmp.Or(context.Cause(ctx), error(unix.ECONNRESET)))
	case !reported:
		return fmt.Errorf("remoting: a subscriber of events does not return: %w", context.Cause(ctx))
	}
	return nil
}
