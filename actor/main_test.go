package actor

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		runPeer()
	}
	goleak.VerifyTestMain(m)
}
