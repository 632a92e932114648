package iwarp

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestManyWait: the cost of making a connection wait for a receive, and of ending that, does not
// grow with the number of waiting connections. Otherwise peers could stop the loop with many of
// them.
func TestManyWait(t *testing.T) {
	const many = 65536                                                  // Config.MaxConns
	s := &sharedQueue{dev: &device{in: new(instance)}, scheduled: true} // there is no loop
	conns := make([]*conn, many)
	for i := range conns {
		conns[i] = &conn{qp: &queuePair{srq: s}}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := cpuTime(t)
	for range 2 { // a connection that waits already keeps its place
		for _, c := range conns {
			c.addWaiting()
		}
	}
	for _, c := range conns[1:] {
		c.removeWaiting()
	}
	for _, c := range conns[2:] {
		c.addWaiting()
	}
	conns[1].removeWaiting() // it does not wait
	if took := cpuTime(t) - start; took > 2*time.Second {
		t.Errorf("%d connections that come and go took %v of CPU", many, took)
	}
	if n := s.waiting.n; n != many-1 || s.waiting.oldest != conns[0] || s.waiting.newest != conns[many-1] {
		t.Errorf("%d connections wait, want %d", n, many-1)
	}
}

// cpuTime returns the CPU time of this thread. Other load on the machine does not change it.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
