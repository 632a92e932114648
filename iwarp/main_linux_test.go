package iwarp

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(peerEnv); role != "" {
		os.Exit(runPeer(role))
	}
	goleak.VerifyTestMain(m)
}
