package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// abortFor is how long Shutdown waits, after its context has ended, for identifiers that it has destroyed: devices in software
// give them back at once, and one that does not is named in the error.
const abortFor = time.Second

// Shutdown ends the runtime: no identifier is created any more, listeners go, connections are closed as with Close, and the rest is
// destroyed when ctx ends; their owners get Closed. Then the device's memory and queues are freed and the loops stopped. Nothing
// is left: no goroutine, no file descriptor, no identifier, unless the error names it. Actors of the application that run on the
// loops can still be stopped afterwards, but receive nothing more. The ActorSystem is the caller's: it is not shut down.
//
// Any goroutine but a loop's, which gets eventloop.ErrOnLoop. Further calls wait for the first and return its error.
func (rt *Runtime) Shutdown(ctx context.Context) error {
	if rt.onLoop() {
		return fmt.Errorf("rdma: Shutdown: %w", eventloop.ErrOnLoop)
	}
	rt.shutdown.once.Do(func() {
		rt.shutdown.err = rt.end(ctx)
		close(rt.shutdown.done)
	})
	<-rt.shutdown.done
	return rt.shutdown.err
}

func (rt *Runtime) end(ctx context.Context) error {
	rt.closing.Store(true)
	empty := make([]chan struct{}, len(rt.loops))
	for i, l := range rt.loops {
		empty[i] = make(chan struct{})
		if err := l.el.Post(func() { l.wind(empty[i]) }); err != nil {
			close(empty[i]) // it has ended by itself
		}
	}
	err := rt.wait(ctx, empty)
	rt.cancel()
	rt.running.Wait()
	rt.sys.Root.Stop(rt.guardian)
	select {
	case <-rt.stopped:
	case <-time.After(abortFor):
		err = errors.Join(err, fmt.Errorf("rdma: the guardian does not stop: is a loop blocked?"))
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortFor)
	defer cancel()
	return errors.Join(err, rt.stopLoops(last))
}

// wind closes everything on a loop, and tells when nothing is left.
func (l *loop) wind(empty chan struct{}) {
	if len(l.ids) == 0 {
		close(empty)
		return
	}
	l.emptied = func() {
		l.emptied = nil
		close(empty)
		l.el.Handoff()
	}
	for it := range l.ids {
		it.box.PostUserMessage(&wind{})
	}
}

// wind asks an identifier to close itself because of Shutdown.
type wind struct{}

func (*wind) lane() lane { return laneControl }

// wait waits until the loops are empty. When ctx ends, what is left is destroyed.
func (rt *Runtime) wait(ctx context.Context, empty []chan struct{}) error {
	for _, e := range empty {
		select {
		case <-e:
		case <-ctx.Done():
			return rt.abort(ctx, empty)
		}
	}
	return nil
}

func (rt *Runtime) abort(ctx context.Context, empty []chan struct{}) error {
	for _, l := range rt.loops {
		_ = l.el.Post(func() { // refused by a loop that has ended: it has none
			for it := range l.ids {
				it.box.PostUserMessage(&abort{fmt.Errorf("%w: %w", ErrShutdown, context.Cause(ctx))})
			}
		})
	}
	patience := time.NewTimer(abortFor)
	defer patience.Stop()
	for _, e := range empty {
		select {
		case <-e:
		case <-patience.C:
			return fmt.Errorf("rdma: shutdown: %w; the device still holds %s", context.Cause(ctx), rt.leftIDs())
		}
	}
	return fmt.Errorf("rdma: shutdown: connections were aborted: %w", context.Cause(ctx))
}

// leftIDs names the identifiers that are left. A loop that is blocked cannot be asked: Shutdown does not wait for it.
func (rt *Runtime) leftIDs() string {
	told := make(chan []IDInfo, 1)
	go func() { told <- rt.Inspect() }() // it ends when the loop lets go
	var names []string
	select {
	case infos := <-told:
		for _, i := range infos {
			names = append(names, fmt.Sprintf("id %d (%v %v)", i.ID, i.State, i.Local))
		}
	case <-time.After(abortFor):
		return "what it has on a loop that is blocked"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// wind ends an identifier in order.
func (it *ident) wind() {
	if it.ending {
		return
	}
	if it.cause == nil {
		it.cause = ErrShutdown
	}
	it.close(&Close{}, nil, func(Event) {})
}

// stopLoops frees what the loops share over their devices, closes the device and ends the loops.
func (rt *Runtime) stopLoops(ctx context.Context) (err error) {
	for _, l := range rt.loops {
		closed := make(chan error, 1)
		if post := l.el.Post(func() { closed <- l.close() }); post == nil {
			select {
			case e := <-closed:
				err = errors.Join(err, e)
			case <-ctx.Done():
				err = errors.Join(err, fmt.Errorf("rdma: loop %s is blocked: %w", l.el.Name(), context.Cause(ctx)))
			}
		}
		err = errors.Join(err, l.el.Shutdown(ctx))
		l.buryAll()
	}
	return err
}

// close frees what connections share, and the device.
func (l *loop) close() error {
	for _, d := range l.devices {
		d.close()
	}
	l.devices = nil
	return l.ch.Close()
}
