package inspect

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(crowdOf); addr != "" {
		os.Exit(crowd(addr))
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}
