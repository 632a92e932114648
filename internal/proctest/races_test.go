package proctest

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The addresses of a running test are returned to no other.
func TestFreeAddrs(t *testing.T) {
	const n = 2000 // of 20,000 ports: without a record, some 200 would be chosen twice
	seen := make(map[string]bool)
	for range n {
		seen[FreeAddrs(t, 1)[0]] = true
	}
	if len(seen) != n {
		t.Errorf("%d addresses, %d of them different", n, len(seen))
	}
}

func TestOurs(t *testing.T) {
	report := func(one, two string) string {
		return "==================\nWARNING: DATA RACE\nRead at 0x1 by goroutine 1:\n  runtime.x()\n      /go/x.go:1 +0x1\n  " + one +
			"()\n      /a.go:1 +0x1\n  github.com/rdmactor/rdmactor/x.caller()\n      /b.go:2 +0x1\n\n" +
			"Previous write at 0x1 by goroutine 2:\n  " + two + "()\n      /a.go:1 +0x1\n\n" +
			"Goroutine 1 (running) created at:\n  github.com/rdmactor/rdmactor/x.Start()\n      /c.go:1 +0x1\n==================\n"
	}
	const theirs, our = "github.com/asynkron/protoactor-go/remote.(*BlockList).Block", "github.com/rdmactor/rdmactor/remoting.(*link).x"
	const unlocked = "github.com/asynkron/protoactor-go/cluster.(*MemberList).BroadcastEvent"
	for _, tt := range []struct {
		one, two string
		want     int
	}{{theirs, theirs, 0}, {theirs, our, 1}, {our, theirs, 1}, {our, our, 1}, {unlocked, our, 0}} {
		if got := ownReports(report(tt.one, tt.two)); len(got) != tt.want {
			t.Errorf("%s and %s: %q", tt.one, tt.two, got)
		}
	}
	// What BroadcastEvent has only called or started is judged as anything else.
	called, started := report(our+"()\n      /a.go:1 +0x1\n  "+unlocked, theirs), report(theirs, our)
	started = strings.Replace(started, "created at:\n", "created at:\n  "+unlocked+"()\n      /a.go:1 +0x1\n", 1)
	for _, r := range []string{called, started} {
		if len(ownReports(r)) != 1 {
			t.Errorf("not seen: %s", r)
		}
	}
}
