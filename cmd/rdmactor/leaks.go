package main

import (
	"bytes"
	"fmt"
	"runtime"
	"time"

	"github.com/rdmactor/rdmactor/internal/measure"
)

// holdings are what a command must have given back at its end.
type holdings struct{ goroutines, fds int }

// held counts the goroutines that this project's packages have begun, and the sockets and device
// files that are open.
func held() (h holdings) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		_, by, _ := bytes.Cut(stack, []byte("\ncreated by github.com/rdmactor/rdmactor/"))
		if len(by) > 0 && !bytes.HasPrefix(by, []byte("cmd/")) {
			h.goroutines++
		}
	}
	h.fds = measure.OpenFiles("socket:", "/dev/infiniband/")
	return h
}

// leaked names what is held above h. What has just been ended may take a moment to go.
func (h holdings) leaked() error {
	const patience = 2 * time.Second
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now := held()
		if now.goroutines <= h.goroutines && now.fds <= h.fds {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not given back: %d goroutines, %d sockets and device files", max(now.goroutines-h.goroutines, 0), max(now.fds-h.fds, 0))
		}
	}
}
