package main

import (
	"bytes"
	"fmt"
	"runtime"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
)

// resources counts the resources that a command must free before it ends.
type resources struct{ goroutines, fds int }

// inUse counts the goroutines started by this project's packages, and the open sockets and device
// files.
func inUse() (r resources) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		_, by, _ := bytes.Cut(stack, []byte("\ncreated by github.com/rdmactor/rdmactor/"))
		if len(by) > 0 && !bytes.HasPrefix(by, []byte("cmd/")) {
			r.goroutines++
		}
	}
	r.fds = stats.OpenFiles("socket:", "/dev/infiniband/")
	return r
}

// checkLeaks returns an error if more is in use than r. Resources closed a moment ago may still be
// counted, so checkLeaks waits a little.
func (r resources) checkLeaks() error {
	const patience = 2 * time.Second
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now := inUse()
		if now.goroutines <= r.goroutines && now.fds <= r.fds {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not given back: %d goroutines, %d sockets and device files", max(now.goroutines-r.goroutines, 0), max(now.fds-r.fds, 0))
		}
	}
}
