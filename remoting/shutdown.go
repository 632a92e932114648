package remoting

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/plain"
)

// Shutdown ends the node. It accepts nothing more, neither from this actor system, where it becomes
// dead letters, nor from other nodes. Accepted messages are still sent, until ctx ends, also to
// peers that the node is about to connect to, but not to those that cannot be reached. Then
// everything that waits is answered: futures get *Unknown, or ErrDeadLetter if their requests were
// not sent, and watchers AddressTerminated. If not all was sent, or if it is not known whether the
// peers have received all of it, that is an error, which names up to eight of these peers;
// *Disconnected counts for each. Messages by which Proto.Actor keeps a cluster running, such as
// gossip, count for neither.
//
// Config.Patience does not bound Shutdown: a connected peer that takes nothing is waited for until
// ctx ends, and without a deadline for up to an hour. Give ctx a deadline. Loops that user code
// blocks, and subscribers of events, may delay the return by two seconds more.
//
// The actor system and the runtime are the caller's; shut the runtime down afterwards. Any
// goroutine but a loop's. Further calls wait for the first and return its error.
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

// farewell is the time before the context's end at which unsent messages are given up.
const farewell = 100 * time.Millisecond

// lastWord is how long loops may take to stop links and the listener, which waits for no peer, and
// subscribers to handle the events about that, even if ctx has ended. They are late while user code
// blocks them, or on a busy machine.
const lastWord = 2 * time.Second

// beginShutdown makes the links regard what they lose as lost by Shutdown, also before they hear of
// it.
func (n *Node) beginShutdown() {
	n.leaving.Store(true)
	n.down.Store(true)
}

func (n *Node) shutDown(ctx context.Context) error {
	n.beginShutdown()
	timeout := time.Hour
	if due, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(due)-farewell, time.Millisecond)
	}
	n.closeLinks(&leave{timeout})
	sent := n.rt.Scheduler().Await(n.alone, ctx.Done())
	if !sent {
		n.stopLinks()
	}
	n.listener.Stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	ended := n.rt.Scheduler().Await(n.alone, last.Done()) && n.rt.Scheduler().Await(n.listener.Gone(), last.Done())
	reported := n.rt.Scheduler().Await(n.idle, ctx.Done()) || n.rt.Scheduler().Await(n.idle, last.Done())
	unconfirmed, peers, unsent := n.shortfall.unconfirmedTotal()
	switch {
	case !ended:
		return fmt.Errorf("remoting: a loop does not get on: %w", context.Cause(last))
	case unsent != nil:
		return fmt.Errorf("remoting: not all was sent%s: %w", peers, cmp.Or(context.Cause(ctx), unsent))
	case unconfirmed > 0:
		return fmt.Errorf("remoting: %d messages were sent%s, and it is not known whether they were received: %w",
			unconfirmed, peers, cmp.Or(context.Cause(ctx), error(unix.ECONNRESET)))
	case !reported:
		return fmt.Errorf("remoting: a subscriber of events does not return: %w", context.Cause(ctx))
	}
	return nil
}

// shortfall counts the messages that peers may not have received when the node was shut down. Any
// goroutine.
type shortfall struct {
	mu          sync.Mutex
	unsent      error    // why the first messages were not sent; nil: all were
	unconfirmed int      // messages that were sent
	peers       []string // the names of these peers, some twice
}

func (s *shortfall) noteUnsent(peer string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsent, s.peers = cmp.Or(s.unsent, why), append(s.peers, peer)
}

func (s *shortfall) noteUnconfirmed(peer string, messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unconfirmed, s.peers = s.unconfirmed+messages, append(s.peers, peer)
}

// namedPeers is how many peers the error of Shutdown names.
const namedPeers = 8

// unconfirmedTotal returns how many messages are unconfirmed, the peers as text for an error (" to
// a, b and 3 more", or ""), and why something was not sent.
func (s *shortfall) unconfirmedTotal() (unconfirmed int, peers string, unsent error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.peers) == 0 {
		return s.unconfirmed, "", s.unsent
	}
	names, more := slices.Compact(slices.Sorted(slices.Values(s.peers))), ""
	if len(names) > namedPeers {
		names, more = names[:namedPeers], fmt.Sprintf(" and %d more", len(names)-namedPeers)
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = plain.Quote(name)
	}
	return s.unconfirmed, " to " + strings.Join(quoted, ", ") + more, s.unsent
}
