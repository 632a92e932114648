package actortest

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing/synctest"
	"time"
)

// end shuts everything down, and looks for what is left, if the test function has returned.
func (w *World) end() {
	for _, p := range w.probes {
		p.end()
	}
	left := w.held()
	left = append(left, w.shutdown()...)
	left = append(left, w.leftovers()...)
	if !w.finished {
		return
	}
	for _, l := range left {
		w.t.Errorf("actortest: left after the test: %s", l)
	}
}

// held is the messages that actors do not give back, whatever time they are given.
func (w *World) held() (left []string) {
	synctest.Wait()
	for _, rt := range w.runtimes {
		if rt.Held() == 0 {
			continue
		}
		w.Advance(Patience)
		if n := rt.Held(); n > 0 {
			left = append(left, fmt.Sprintf("messages (%d *rdma.Received) that were retained and never released", n))
		}
	}
	return left
}

// shutdown ends the runtimes and the actor system, and tells what resisted.
func (w *World) shutdown() (left []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, rt := range slices.Backward(w.runtimes) {
		if err := rt.Shutdown(ctx); err != nil {
			left = append(left, err.Error())
		}
	}
	for _, p := range w.probes {
		w.sys.Root.Stop(p.pid)
	}
	w.sys.Shutdown()
	w.Advance(2 * deadLetterTick)
	return left
}

// leftovers is what the devices still hold, and the bubble's goroutines.
func (w *World) leftovers() (left []string) {
	left = w.fabric.Left()
	for id, stack := range bubbleGoroutines() {
		if _, ok := w.own[id]; !ok {
			left = append(left, "a goroutine that the test, or one of its actors, has started:\n"+stack)
		}
	}
	slices.Sort(left)
	return left
}

// header begins a goroutine's stack trace, inside a bubble.
var header = regexp.MustCompile(`^goroutine (\d+) .*\[.*synctest bubble (\d+).*\]:`)

// bubbleGoroutines is the stacks of the caller's bubble, by goroutine.
func bubbleGoroutines() map[uint64]string {
	synctest.Wait()
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := make(map[uint64]string)
	var bubble string
	for i, stack := range bytes.Split(buf, []byte("\n\n")) {
		m := header.FindSubmatch(stack)
		if i == 0 { // the caller
			if m == nil {
				panic(fmt.Sprintf("actortest: no synctest bubble in %q", stack))
			}
			bubble = string(m[2])
		}
		if m != nil && string(m[2]) == bubble {
			id, _ := strconv.ParseUint(string(m[1]), 10, 64)
			all[id] = string(stack)
		}
	}
	return all
}
