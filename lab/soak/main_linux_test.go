package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/lab/measure"
)

var run = flag.Bool("soak", false, "run the short soak: half a minute, as root, with /dev/net/tun")

func TestMain(m *testing.M) {
	var r role
	if child, err := measure.Role(&r); child { // of TestSoak
		if err == nil {
			err = runProcess(r)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // children with -race sleep for a second otherwise
	goleak.VerifyTestMain(leak.Settled{M: m})
}

// TestSoak runs the pairs with their faults, in network namespaces. It fails where that is not
// possible.
//
//	go test ./lab/soak -args -soak
func TestSoak(t *testing.T) {
	if !*run {
		return
	}
	if err := runSoak(t.Context(), soakPlans(fast, fast), uint64(time.Now().UnixNano()), 20*time.Second); err != nil {
		t.Error(err)
	}
}
