package remoting

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Shutdown ends the node. It accepts nothing more, neither from this actor system, where it becomes
// dead letters, nor from other nodes. What was accepted is still sent, until ctx ends, also to
// peers that the node is about to connect to, but not to those that cannot be reached. Then
// everything that waits is answered: futures get *Unknown, or ErrDeadLetter if their requests were
// not sent, and watchers AddressTerminated. The actor system and the runtime are the caller's; shut
// the runtime down afterwards. Any goroutine but a loop's. Further calls wait for the first and
// return its error.
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
	n.sys.Root.Stop(n.owner)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	ended := n.rt.Scheduler().Await(n.alone, last.Done()) && n.rt.Scheduler().Await(n.gone, last.Done())
	reported := n.rt.Scheduler().Await(n.idle, ctx.Done())
	switch {
	case !ended:
		return fmt.Errorf("remoting: a loop does not get on: %w", context.Cause(last))
	case !sent || n.unsent.Load():
		return fmt.Errorf("remoting: not all was sent: %w", cmp.Or(context.Cause(ctx), error(unix.ETIMEDOUT)))
	case !reported:
		return fmt.Errorf("remoting: a subscriber of events does not return: %w", context.Cause(ctx))
	}
	return nil
}

// close has every link end with m, and lets none be made.
func (n *Node) close(m any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closing = true
	n.emptiedLocked()
	for _, p := range n.peersLocked() {
		n.sys.Root.Send(p.link, m)
	}
}

// stopLinks ends every link at once. They can be stopped also if the runtime was shut down, when
// they get nothing any more.
func (n *Node) stopLinks() {
	n.mu.Lock()
	peers := n.peersLocked()
	n.mu.Unlock()
	for _, p := range peers {
		n.sys.Root.Stop(p.link)
	}
}

// peersLocked is the peers in the order in which they were made.
func (n *Node) peersLocked() []*peer {
	return slices.SortedFunc(maps.Values(n.peers), func(a, b *peer) int { return int(a.number) - int(b.number) })
}

// emptiedLocked closes idle when there are no links and none can come.
func (n *Node) emptiedLocked() {
	if n.closing && len(n.peers) == 0 {
		shut(n.alone)
		if n.reporters == 0 {
			shut(n.idle)
		}
	}
}

// shut closes c, once.
func shut(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// leave sends what waits, and then ends the connection in order. Before there is a connection it
// waits for one: the peer may have been sent its first message just now.
func (l *link) leave(ctx actor.Context, timeout time.Duration) {
	if l.ended {
		return
	}
	l.bye = true
	l.p.mu.Lock()
	waits := l.p.waitsLocked()
	l.p.mu.Unlock()
	if l.greeting != open && (!waits || l.pausing) {
		l.fall(ctx, ErrShutdown)
		return
	}
	l.deadline = rdma.After(ctx, timeout, &overtime{})
	l.flush(ctx)
}

// overtime gives up what has not been sent.
func (l *link) overtime(ctx actor.Context) {
	if !l.ended {
		l.n.unsent.Store(true)
		l.fall(ctx, fmt.Errorf("%w: %w", ErrShutdown, unix.ETIMEDOUT))
	}
}

// leaveIfSent ends the connection in order when everything was sent.
func (l *link) leaveIfSent(ctx actor.Context) {
	if !l.bye || l.greeting != open {
		return
	}
	l.refuse(ctx, ErrShutdown)
	l.say(ctx, &frame.Record{Kind: frame.KindGoodbye, Code: frame.GoodbyeShutdown, Reason: "the node shuts down"})
}
