package actor

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
)

func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		runPeer()
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}
