package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if runPlanAndExit() { // the process of a suite
		return
	}
	goleak.VerifyTestMain(m)
}
