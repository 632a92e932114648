package rpc

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(serveAt); addr != "" {
		os.Exit(serveUntilSIGTERM(addr))
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}
