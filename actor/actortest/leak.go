package actortest

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"
)

// end shuts everything down, and looks for what is left, if the test function has returned.
func (w *World) end() {
	w.Wait()
	missed := append(w.missed(), w.unheard()...) // what is shut down speaks once more
	w.over.Store(true)
	w.hang.Stop()
	for _, p := range w.probes {
		p.end()
	}
	w.release()
	left, messages := w.held()
	left = append(left, w.shutdown()...)
	if messages == 0 { // else their memory is left for them
		left = append(left, w.fabric.Left()...)
	}
	left = append(left, w.leftovers()...)
	for _, p := range w.pollers {
		p.report("has not gone on after")
	}
	if !w.finished {
		return
	}
	for _, l := range left {
		w.t.Errorf("actortest: left after the test: %s", l)
	}
	for _, m := range append(missed, w.panics.missed()...) {
		w.t.Errorf("actortest: %s", m)
	}
}

// held is the messages that actors do not give back, whatever time they are given.
func (w *World) held() (left []string, messages int) {
	synctest.Wait()
	for _, m := range w.machines {
		rt := m.rt
		n, ok := ask(rt.Held)
		if n > 0 {
			time.Sleep(Patience)
			synctest.Wait()
			n, ok = ask(rt.Held)
		}
		switch {
		case !ok:
			left = append(left, blocked())
		case n > 0:
			messages += n
			left = append(left, fmt.Sprintf("messages (%d *rdma.Received) that were retained and never released", n))
		}
	}
	return left, messages
}

// ask calls what asks the loops, which leaves a blocked one out after a second. Not ok: a loop does not answer.
func ask[T any](fn func() T) (v T, ok bool) {
	for begin := time.Now(); time.Since(begin) < Patience; {
		asked := time.Now()
		if v = fn(); time.Since(asked) < time.Second {
			return v, true
		}
	}
	return v, false
}

// blocked says which loops do not come to an end.
func blocked() string {
	s := "an actor that blocks a loop (rdma.OffLoop is for those that may):"
	for _, stack := range bubbleGoroutines() {
		if strings.Contains(stack, "eventloop.(*Loop).call(") {
			s += "\n" + stack
		}
	}
	return s
}

// shutdown ends the runtimes and the actor system, and tells what resisted.
func (w *World) shutdown() (left []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, m := range slices.Backward(w.machines) {
		if err := m.rt.Shutdown(ctx); err != nil {
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

// leftovers is the bubble's goroutines.
func (w *World) leftovers() (left []string) {
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
