package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Shutdown ends the runtime. No further identifier is created, listeners are destroyed, and
// connections are closed as with Close; those that are left when ctx ends are destroyed. All owners
// get Closed. Then the device's memory and queues are freed and the loops stopped. No goroutine,
// file descriptor or identifier is left, unless the error names it: the kernel's rdma_cm may take
// up to 100 s to destroy an identifier. The owner of such a one gets Closed with ErrHeld.
//
// Actors of the application that run on the loops receive all messages that were sent to them until
// then. Afterwards they receive nothing more, but can still be stopped. The ActorSystem is the
// caller's and is not shut down, unless Open made it.
//
// Until ctx ends, Shutdown waits for the messages that owners still have (see Runtime.Held:
// retained, being received or on their way), and for goroutines that use memory of connections
// (Memory.Use). Memory that is not released by then is not freed, so that it stays readable, and
// the error states how much that is.
//
// Shutdown waits for the logger too, unless it takes more than 5 s for one line (Runtime.Logger);
// the error reports that then.
//
// Any goroutine may call it except a loop's, and one on which OnStall is called: those get
// eventloop.ErrOnLoop. Further calls wait for the first and return its error.
func (rt *Runtime) Shutdown(ctx context.Context) error {
	if err := eventloop.MayWait(); err != nil {
		return fmt.Errorf("rdma: shutdown: %w", err)
	}
	if rt.shutdown.begun.CompareAndSwap(false, true) {
		defer func() { // also after a panic in a loop's OnPanic
			rt.over.Store(true)
			close(rt.shutdown.done)
		}()
		rt.shutdown.err = rt.shutDownAll(ctx)
		return rt.shutdown.err
	}
	<-rt.shutdown.done
	rt.Scheduler().Resume()
	return rt.shutdown.err
}

func (rt *Runtime) shutDownAll(ctx context.Context) error {
	rt.closing.Store(true)
	empty := make([]chan struct{}, len(rt.loops))
	for i, l := range rt.loops {
		empty[i] = make(chan struct{})
		if err := l.el.Post(func() { l.shutDown(empty[i]) }); err != nil {
			close(empty[i]) // it has ended already
		}
	}
	err := errors.Join(rt.awaitEmpty(ctx, empty), rt.waitReturned(ctx))
	rt.cancel()
	rt.running.Wait()
	rt.Scheduler().Resume()
	last, cancel := rt.graceContext(ctx)
	defer cancel()
	rt.sys.Root.Stop(rt.guardian)
	if !rt.Scheduler().Await(rt.stopped, last.Done()) {
		err = errors.Join(err, fmt.Errorf("rdma: shutdown: the guardian does not stop: is a loop blocked?"))
	}
	rt.sys.EventStream.Unsubscribe(rt.failures)
	err = errors.Join(err, rt.stopLoops(last))
	if rt.ownsSystem {
		rt.sys.Shutdown()
	}
	return errors.Join(err, rt.journal.Flush(last))
}

// graceContext returns a context that ends when ctx has been over for abortFor.
func (rt *Runtime) graceContext(ctx context.Context) (context.Context, context.CancelFunc) {
	g, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := rt.Scheduler().OnDone(ctx, func() {
		rt.Scheduler().AfterFunc(abortFor, func() { cancel(context.Cause(ctx)) })
	})
	return g, func() {
		stop()
		cancel(nil)
	}
}

// shutDown closes everything on a loop, and closes empty when nothing is left.
func (l *loop) shutDown(empty chan struct{}) {
	l.emptied = func() {
		l.emptied = nil
		close(empty)
		l.el.Handoff()
	}
	l.notifyLeavers()
	l.flight.Note(l.el.Now(), 0, FlightCommand, "shutdown", 0)
	for _, it := range l.inOrder() {
		it.box.PostUserMessage(&shutdownAsked{})
	}
	l.checkEmptied()
}

// awaitEmpty waits until the loops are empty. When ctx ends, the remaining identifiers are
// destroyed.
func (rt *Runtime) awaitEmpty(ctx context.Context, empty []chan struct{}) error {
	for _, e := range empty {
		if !rt.Scheduler().Await(e, ctx.Done()) {
			return rt.destroyRemaining(ctx, empty)
		}
	}
	return nil
}

func (rt *Runtime) destroyRemaining(ctx context.Context, empty []chan struct{}) error {
	var wait atomic.Int32 // loops where an identifier may still be returned in time
	stuck := make(chan struct{})
	wait.Store(int32(len(rt.loops)))
	for _, l := range rt.loops {
		_ = l.el.Post(func() { // an error means that the loop has ended: it has none
			if l.destroyRemaining(fmt.Errorf("%w: %w", ErrShutdown, context.Cause(ctx))) && wait.Add(-1) == 0 {
				close(stuck)
			}
		})
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortFor)
	defer cancel()
	for _, e := range empty {
		select {
		case <-e:
		case <-stuck:
		case <-patience.Done():
		}
		rt.Scheduler().Resume()
		select {
		case <-e: // also if another case was ready
			continue
		default:
		}
		err := fmt.Errorf("rdma: shutdown: %w; the device still holds %s", context.Cause(ctx), rt.leftIDs())
		rt.closeAllHeld()
		return err
	}
	return fmt.Errorf("rdma: shutdown: connections were aborted: %w", context.Cause(ctx))
}

// destroyRemaining destroys the remaining identifiers of a loop. stuck: there is nothing to do but
// wait, because a slow device is already destroying all of them.
func (l *loop) destroyRemaining(cause error) (stuck bool) {
	l.forgetLeavers()
	stuck = l.coming.Load() == 0
	for _, it := range l.inOrder() {
		stuck = stuck && it.isEnding() && it.life.goodbye.then == nil && !it.isGone()
		it.box.PostUserMessage(&abort{cause})
	}
	return stuck
}

// closeAllHeld ends the actors of identifiers that the device does not return. Their owners get
// Closed.
func (rt *Runtime) closeAllHeld() {
	askLoops(rt, func(l *loop) struct{} {
		l.emptied = nil
		for _, it := range l.inOrder() {
			it.closeHeld()
		}
		return struct{}{}
	})
}

// leftIDs names the identifiers that are left. A loop that is blocked cannot be asked: Shutdown
// does not wait for it.
func (rt *Runtime) leftIDs() string {
	answers, blocked := askLoops(rt, (*loop).remainingNames)
	names := slices.Concat(answers...)
	if blocked {
		names = append(names, "those on a blocked loop")
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// remainingNames names the identifiers that are left on a loop.
func (l *loop) remainingNames() (names []string) {
	name := func(id *cmid.ID) {
		names = append(names, fmt.Sprintf("id %d (%v %v)", id.Handle(), id.State(), id.Info().Local))
	}
	for it := range l.ids {
		if it.id != nil {
			name(it.id)
		}
	}
	for id := range l.orphans {
		name(id)
	}
	return names
}

// waitReturned waits until owners and goroutines have released all memory. When ctx ends, they keep
// the rest.
func (rt *Runtime) waitReturned(ctx context.Context) error {
	for _, l := range rt.loops {
		back := make(chan struct{})
		if l.el.Post(func() { l.awaitReturned(back) }) != nil {
			continue // it has ended
		}
		if rt.Scheduler().Await(back, ctx.Done()) {
			continue
		}
		return rt.stillUsed(context.Cause(ctx))
	}
	return nil
}

// stillUsed returns an error that counts what owners and goroutines still use; nil: nothing.
func (rt *Runtime) stillUsed(cause error) error {
	var left []string
	if n := rt.Held(); n > 0 {
		left = append(left, fmt.Sprintf("%d messages are still retained", n))
	}
	used := 0
	counts, _ := askLoops(rt, func(l *loop) int { return l.Kept })
	for _, n := range counts {
		used += n
	}
	if used > 0 {
		left = append(left, fmt.Sprintf("%d memories of connections are still used", used))
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("rdma: shutdown: %s, and their memory is left: %w", strings.Join(left, ", "), cause)
}

// countOwned counts the messages and memories of this loop that owners and goroutines use.
func (l *loop) countOwned() int { return l.Held() + l.Kept }

// awaitReturned closes back when all of this loop's memory is released.
func (l *loop) awaitReturned(back chan struct{}) {
	if l.countOwned() == 0 {
		close(back)
		return
	}
	l.Returned = func() {
		if l.countOwned() == 0 {
			l.Returned = nil
			close(back)
			l.el.Handoff()
		}
	}
}

// stopLoops frees the shared resources of connections, closes the devices and ends the loops.
func (rt *Runtime) stopLoops(ctx context.Context) (err error) {
	for _, l := range rt.loops {
		closed := make(chan error, 1)
		if post := l.el.Post(func() {
			var e error
			defer func() { closed <- e }()
			e = l.closeResources()
		}); post == nil {
			select {
			case e := <-closed:
				rt.Scheduler().Resume()
				err = errors.Join(err, e)
			case <-ctx.Done():
				rt.Scheduler().Resume()
				err = errors.Join(err, fmt.Errorf("rdma: loop %s is blocked: %w", l.el.Name(), context.Cause(ctx)))
			}
		}
		err = errors.Join(err, l.el.Shutdown(ctx))
		rt.Scheduler().Resume()
		rt.registry.BuryAll(l.exec)
	}
	return err
}

// closeResources delivers the remaining messages to the loop's actors, then frees the shared
// resources of connections and closes the device.
func (l *loop) closeResources() error {
	l.rt.registry.LastCalls(l.exec)
	l.Close()
	l.askRest.setAnswer(l.currentFigures()) // Loops is called after Shutdown, too
	return l.ch.Close()
}
