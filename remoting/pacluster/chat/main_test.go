package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/leak"
)

const asChat = "RUN_AS_CHAT"

func TestMain(m *testing.M) {
	if os.Getenv(asChat) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}
