// Package leak finds leaks of tests: Settled is for a TestMain that looks for
// goroutines, Files checks a test's open files.
package leak

import (
	"bytes"
	"runtime"
	"testing"
	"time"
)

// Settled is a testing.M after whose tests Proto.Actor's counting of dead letters has ended:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }
//
// Proto.Actor keeps a goroutine for a second (actor.Config.DeadLetterThrottleInterval) after a dead
// letter, even if its system was shut down since. goleak waits for half of that.
type Settled struct{ *testing.M }

// Run runs the tests, and waits a few seconds at most.
func (s Settled) Run() int {
	code := s.M.Run()
	for end := time.Now().Add(5 * time.Second); throttleRuns() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return code
}

// throttleRuns reports whether a goroutine of NewThrottle's is there.
func throttleRuns() bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("NewThrottle"))
}
