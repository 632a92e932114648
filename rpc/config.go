package rpc

import (
	"cmp"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Defaults of both sides.
const (
	defaultMessage = 4 << 20
	defaultCredits = 32
)

func positiveOr[T ~int | ~int64](v, byDefault T) T { return cmp.Or(max(v, 0), byDefault) }

func boundCalls(calls int) int { return min(positiveOr(calls, 1024), wire.MaxSlots-1) }

// boundMessage returns the size of the largest message, which the device limits in whole KiB.
func boundMessage(message int) int {
	return (min(positiveOr(message, defaultMessage), 1<<30) + 1<<10 - 1) &^ (1<<10 - 1)
}

func boundMemory(memory, message int) int { return max(positiveOr(memory, 256<<20), 4*message) }

func boundWindow(window int) int {
	return min(max(positiveOr(window, 64<<10), 1<<10), 65_535<<10) &^ (1<<10 - 1)
}

// streamsOf returns the number of calls of a connection that may be streams; most 0: the default.
func streamsOf(most, calls int) int { return cmp.Or(most, (calls+1)/2) }

// idConfig returns the configuration of connections' identifiers.
func idConfig(message, credits int) rdma.IDConfig {
	return rdma.IDConfig{MaxMessage: message, Credits: credits, Stream: true}
}
