package remoting_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}
