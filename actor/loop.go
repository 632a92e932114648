package actor

import (
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// loop is one event loop with what belongs to it: everything here is the loop goroutine's, unless
// it says otherwise.
type loop struct {
	el   *eventloop.Loop
	exec *mailbox.Loop // runs the actors; its Context is this. Any goroutine
	spread

	rt  *Runtime
	ch  *cmid.Channel
	ids map[*ident]struct{} // every identifier whose actor runs here
	// identifiers without an actor that the device has not given back, with their connections
	orphans  map[*cmid.ID]*datapath.Conn
	requests unanswered // ConnectRequests
	emptied  func()     // Shutdown waits for the last identifier; nil: nobody does

	datapath.Loop         // what its connections share
	returns       returns // any goroutine
	returned      func()  // Shutdown waits for the messages that owners have; nil: nobody does
}

// abortFor is how long Shutdown waits, after its context has ended, for identifiers that it
// destroys only then: most devices give them back at once. What is being destroyed already is not
// waited for. What does not come back is named in the error.
const abortFor = time.Second

// askLoops asks every loop in its turn, those that have ended excepted. One that is blocked for
// longer than abortFor cannot be asked: then blocked says so, and what the others have answered is
// returned. On a loop's own goroutine only that loop is asked: a loop must not wait for another.
func askLoops[T any](rt *Runtime, ask func(*loop) T) (answers []T, blocked bool) {
	told := make(chan T, len(rt.loops))
	left := 0
	for _, l := range rt.loops {
		if l.el.OnLoop() {
			return []T{ask(l)}, false
		}
	}
	for _, l := range rt.loops {
		if l.el.Post(func() { told <- ask(l); l.el.Handoff() }) == nil {
			left++
		}
	}
	patience := time.NewTimer(abortFor)
	defer patience.Stop()
	for ; left > 0; left-- {
		select {
		case a := <-told:
			answers = append(answers, a)
		case <-patience.C:
			return answers, true
		}
	}
	return answers, false
}

// spread is what a loop is chosen by. Any goroutine.
type spread struct {
	assigned atomic.Int64  // identifiers that live here, or will
	coming   atomic.Int64  // requests between this loop and another: they may still turn up here
	arrived  atomic.Uint64 // of those, how many have come here to stay
}
