package actor

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/flight"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// loop is one event loop with its identifiers and resources. Only the loop's goroutine may use the
// fields, unless their comments state otherwise.
type loop struct {
	el   *eventloop.Loop
	exec *mailbox.Loop // runs the actors; its Context is this. Any goroutine
	load

	rt  *Runtime
	ch  *cmid.Channel
	ids map[*ident]struct{} // every identifier whose actor runs here
	// identifiers without an actor that the device has not returned, with their connections
	orphans map[*cmid.ID]*datapath.Conn
	// Unanswered ConnectRequests, by listener: an owner that does not answer must not use up the
	// room of other listeners. A request counts on the loop where its connection will live.
	requests fairshare.Shares[cmid.Handle]
	rates    fairshare.Rates[netip.Addr] // of requests, by the network address that they come from
	emptied  func()                      // notifies Shutdown of the last end; nil: not needed
	failure  atomic.Pointer[error]       // of a loop that a callback has ended; nil: it runs
	leavers  leavers

	clock         func() time.Time // the loop's, for any goroutine
	past          Traffic          // of connections that have ended
	pastListeners ListenerInfo     // of listeners that have ended
	secured       SecurityTotals   // without the values that are read from present connections
	known         known            // any goroutine
	flight        *flight.Recorder // any goroutine; nil: nothing is recorded
	gone          goneActors       // any goroutine
	// the watched actors, by the mailbox of the actor that has called Local.Watch
	watchers map[*mailbox.Mailbox]*actor.PID
	dials    dialQueue
	askIDs   inquiry[[]IDInfo]
	askRest  inquiry[loopFigures]

	datapath.Loop         // the state that its connections share
	returns       returns // any goroutine
}

// load is the input to loop placement. Any goroutine may use it.
type load struct {
	assigned atomic.Int64  // identifiers that live here, or will
	coming   atomic.Int64  // requests between this loop and another, which may still arrive here
	arrived  atomic.Uint64 // connections that have come from other loops to stay
}

// destroyOrphan destroys an identifier that has no actor, or whose actor has another identifier in
// its place. c is its connection, or nil. A device may take its time: the kernel's rdma_cm up to
// 100 s (rdma_destroy_id(3) waits for pending operations).
func (l *loop) destroyOrphan(id *cmid.ID, c *datapath.Conn) {
	if c != nil {
		c.Stop()
	}
	if id.Do(&cmid.DestroyID{}, nil) != nil {
		l.keepOrphan(id, c)
	} else if c != nil {
		c.Release()
	}
}

// keepOrphan keeps an identifier without an actor until the device returns it.
func (l *loop) keepOrphan(id *cmid.ID, c *datapath.Conn) {
	id.Context = nil
	if l.orphans == nil {
		l.orphans = make(map[*cmid.ID]*datapath.Conn)
	}
	l.orphans[id] = c
}

// orphanEvent handles an event of an identifier without an actor. Closed ends keepOrphan's work:
// the device has returned the identifier.
func (l *loop) orphanEvent(id *cmid.ID, ev cmid.Event) {
	c, ok := l.orphans[id]
	if _, closed := ev.(*cmid.Closed); !closed || !ok {
		return
	}
	delete(l.orphans, id)
	if c != nil {
		c.Release()
	}
	l.checkEmptied()
}

// isEmpty reports whether no identifier is left, none may arrive, and no actor still has to leave.
func (l *loop) isEmpty() bool {
	return len(l.ids) == 0 && len(l.orphans) == 0 && l.coming.Load() == 0 && len(l.leavers.waiting) == 0
}

// inOrder returns the identifiers, oldest first.
func (l *loop) inOrder() []*ident {
	handle := func(it *ident) cmid.Handle {
		if it.id == nil {
			return 0
		}
		return it.id.Handle()
	}
	return slices.SortedFunc(maps.Keys(l.ids), func(a, b *ident) int {
		return cmp.Or(cmp.Compare(handle(a), handle(b)), strings.Compare(a.pid.Id, b.pid.Id))
	})
}

// checkEmptied notifies Shutdown when the loop is empty. The actors of one that a callback has
// ended receive nothing more then.
func (l *loop) checkEmptied() {
	if !l.isEmpty() {
		return
	}
	if l.failErr() != nil {
		l.rt.registry.LastCalls(l.exec)
	}
	if l.emptied != nil {
		l.emptied()
	}
}

// goneActors are actors that have failed while they stopped, before the loop has notified their
// watchers. Any goroutine may use it.
type goneActors struct {
	mu   sync.Mutex
	pids map[string]*actor.PID // by PID.Id; nil: none
}

// add reports whether pid is the first.
func (g *goneActors) add(pid *actor.PID) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first = g.pids == nil; first {
		g.pids = make(map[string]*actor.PID)
	}
	g.pids[pid.Id] = pid
	return first
}

// take empties g.
func (g *goneActors) take() map[string]*actor.PID {
	g.mu.Lock()
	defer g.mu.Unlock()
	pids := g.pids
	g.pids = nil
	return pids
}

// failErr returns the error of a loop that a callback has ended; nil: it runs. Any goroutine.
func (l *loop) failErr() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// isClosing reports whether the loop accepts no identifiers: the runtime is shut down, or a
// callback has ended the loop. Any goroutine.
func (l *loop) isClosing() bool { return l.rt.closing.Load() || l.failErr() != nil }
