package pacluster

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Members are processes, because Proto.Actor's cluster has data races with another one in the same
// process. Each runs this test binary as a member.

const asMember = "RUN_AS_MEMBER"

func TestMain(m *testing.M) {
	if text := os.Getenv(asMember); text != "" {
		os.Exit(runMember(text))
	}
	// Most clusters wait most of the time, for leases to end and for silent members: several run at
	// a time. Tests that compute, and those that measure how fast grains answer again, run alone.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	// Proto.Actor's gossip counts its lines for a minute, also when it has ended.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/cluster.(*Gossiper).StartGossiping.NewThrottle.func3.1"))
}
