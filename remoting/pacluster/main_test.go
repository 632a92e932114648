package pacluster

import (
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
	// Proto.Actor's gossip counts its lines for a minute, also when it has ended.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/cluster.(*Gossiper).StartGossiping.NewThrottle.func3.1"))
}
