package actortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// closeAndCheck shuts everything down, and looks for leaks, if the test function has returned.
func (w *World) closeAndCheck() {
	w.Wait()
	missed := append(w.missedFaults(), w.unreadFailures()...) // before Shutdown sends more events
	w.over.Store(true)
	w.hang.Stop()
	for _, p := range w.probes {
		p.releaseAll()
	}
	w.resumeMachines()
	left, messages := w.unreleasedMessages()
	left = append(left, w.closeRuntimes()...)
	if messages == 0 { // else their memory is left for them
		left = append(left, w.fabric.Left()...)
	}
	left = append(left, w.leakedGoroutines()...)
	for _, p := range w.pollers {
		p.reportStalls("has not gone on after")
	}
	if !w.finished {
		return
	}
	for _, l := range left {
		w.t.Errorf("actortest: left after the test: %s", l)
	}
	for _, m := range append(missed, w.panics.stillExpected()...) {
		w.t.Errorf("actortest: %s", m)
	}
}

// unreleasedMessages finds messages that actors have retained and not released, although they had
// Patience to do so.
func (w *World) unreleasedMessages() (left []string, messages int) {
	synctest.Wait()
	for _, m := range w.machines {
		rt := m.rt
		n, ok := askLoops(rt.Held, time.Second)
		if n > 0 {
			time.Sleep(Patience)
			synctest.Wait()
			n, ok = askLoops(rt.Held, time.Second)
		}
		switch {
		case !ok:
			left = append(left, blockedStacks())
		case n > 0:
			messages += n
			left = append(left, fmt.Sprintf("messages (%d *rdma.Received) that were retained and never released", n))
		}
	}
	return left, messages
}

// closeRuntimes shuts down the runtimes and the actor system, and returns what did not end.
func (w *World) closeRuntimes() (left []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, m := range slices.Backward(w.machines) {
		var gone *eventloop.GoexitError // was reported when it happened
		if err := m.rt.Shutdown(ctx); err != nil && !errors.As(err, &gone) {
			left = append(left, err.Error())
		}
	}
	for _, p := range w.probes {
		w.sys.Root.Stop(p.pid)
	}
	w.sys.Shutdown()
	time.Sleep(2 * deadLetterTick)
	synctest.Wait()
	return left
}

// leakedGoroutines returns the goroutines of the bubble that are still there.
func (w *World) leakedGoroutines() (left []string) {
	for id, stack := range bubbleGoroutines() {
		if _, ok := w.own[id]; !ok {
			left = append(left, "a goroutine that the test, or one of its actors, has started:\n"+stack)
		}
	}
	slices.Sort(left)
	return left
}

// hangs ends the program, as synctest does in a deadlock, and reports where each goroutine waits.
func (w *World) hangs() {
	var test string
	others := []string{}
	for id, stack := range bubbleGoroutines() {
		switch _, own := w.own[id]; {
		case strings.Contains(stack, "actortest.Run.func") && strings.Contains(stack, "testing.tRunner("):
			test = stack
		case own, strings.Contains(stack, "eventlooptest.(*Poller).Wait("), strings.Contains(stack, "eventloop.(*watchdog).run("),
			strings.Contains(stack, "actortest.(*World).hangs("):
		default:
			others = append(others, stack)
		}
	}
	slices.Sort(others)
	panic(fmt.Sprintf("actortest: %s waits for ever: for %v of virtual time it has asked for nothing\n%s\n\n%s\nprobes:%s\nidentifiers:%s\n",
		w.t.Name(), forEver, test, strings.Join(others, "\n\n"), w.listUnread(), w.listIDs()))
}
