package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"testing/synctest"
	"time"
)

// endPatience limits how long a runtime may take to shut down.
const endPatience = 2 * time.Minute

// shutDownAll shuts all processes down, and checks for leftovers.
func (w *World) shutDownAll() {
	if w.Failed() {
		return
	}
	w.planned = nil
	open := 0
	for _, m := range w.machines {
		if m.host != nil {
			m.host.Unwind()
		}
	}
	for _, p := range w.procs {
		p.Thaw()
		if p.dead { // its goroutines continue, too, and see by Context that they are too late
			p.dead = false
			p.cancel()
		}
		open++
		p.Go(func() {
			p.shutDown()
			open--
		})
	}
	if !w.RunUntil(10*endPatience, func() bool { return open == 0 }) {
		w.Fail("%d processes do not end", open)
		return
	}
	var left []string
	// Proto.Actor counts dead letters for a while, and calls wait before they are tried again.
	for _, d := range []time.Duration{10 * time.Millisecond, endPatience} {
		w.RunFor(d)
		for _, p := range w.procs {
			p.cancelWaits()
		}
		synctest.Wait()
		if left = leftoverStacks(); len(left) == 0 {
			break
		}
	}
	for _, stack := range left {
		w.Fail("a goroutine is left:\n%s", stack)
	}
	if w.fabric != nil {
		for _, left := range w.fabric.Left() {
			w.Fail("left at the end: %s", left)
		}
	}
	for _, m := range w.machines {
		if m.net != nil {
			for _, left := range m.net.Left() {
				w.Fail("left at the end on %s: %s", m.name, left)
			}
		}
	}
	w.trace.addLine(w.Now(), "the end, after %d steps", w.steps)
}

// shutDown ends a process. It runs on one of the process's goroutines.
func (p *Process) shutDown() {
	p.cancel()
	for p.opening > 0 { // it was killed in the middle of Open
		p.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	for _, rt := range p.rts {
		err := rt.Shutdown(ctx)
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			continue // the program has shut it down before, with less time
		}
		if err != nil {
			p.w.Fail("%s: Shutdown: %v", p.name, err)
		}
	}
	if !p.sys.IsStopped() { // its program may have done that
		p.sys.Shutdown()
	}
}

// close ends the goroutines of a World that has failed.
func (w *World) close() {
	w.mu.Lock()
	w.elapsed = w.Now() // outside of the bubble the time is different
	w.over = true
	parked := w.parked
	w.parked = nil
	w.mu.Unlock()
	for _, t := range parked {
		close(t.turn)
	}
	for _, p := range w.procs {
		for _, q := range p.pollers {
			close(q.turn)
		}
	}
}

// header matches the first line of the stack of a goroutine in a bubble.
var header = regexp.MustCompile(`^goroutine \d+ .*\[.*synctest bubble (\d+).*\]:`)

// leftoverStacks returns the stacks of the bubble's goroutines, without the caller, the testing
// package's, and the one that waits for the script.
func leftoverStacks() (all []string) {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	var bubble string
	for i, stack := range bytes.Split(buf, []byte("\n\n")) {
		m := header.FindSubmatch(stack)
		if i == 0 {
			if m == nil {
				panic(fmt.Sprintf("world: no bubble in %q", stack))
			}
			bubble = string(m[1])
			continue
		}
		ours := bytes.Contains(stack, []byte("testing/synctest.Test")) || bytes.Contains(stack, []byte(".(*World).runApart("))
		if m != nil && string(m[1]) == bubble && !ours {
			all = append(all, string(stack))
		}
	}
	slices.Sort(all)
	return all
}
