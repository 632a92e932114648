package actortest

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing/synctest"
	"time"
)

// ask calls fn, which asks all loops, and gives up on one that has not answered within a second.
// If that has happened, ask tries again, for Patience in all. Not ok: a loop does not answer.
func ask[T any](fn func() T) (v T, ok bool) {
	for begin := time.Now(); time.Since(begin) < Patience; {
		asked := time.Now()
		if v = fn(); time.Since(asked) < time.Second {
			return v, true
		}
	}
	return v, false
}

// blocked gives the stacks of the loops that are busy with a call.
func blocked() string {
	s := "an actor that blocks a loop (rdma.OffLoop is for those that may):"
	for _, stack := range bubbleGoroutines() {
		if strings.Contains(stack, "eventloop.(*Loop).call(") {
			s += "\n" + stack
		}
	}
	return s
}

// header matches the beginning of the stack trace of a goroutine in a bubble.
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
