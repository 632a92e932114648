package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Metrics are the figures of a measurement by name. The names are those below, and a scenario's
// own.
type Metrics map[string]float64

// The metrics that every scenario has.
const (
	PerSecond        = "per s"
	MiBPerS          = "MiB/s"
	MicrosPer        = "us"     // the time divided by the number of calls or messages
	CPUPer           = "CPU us" // of both processes, for each call or message
	ServerCPUPer     = "server CPU us"
	ClientCPUPer     = "client CPU us"
	ServerCPUs       = "server CPUs" // number of processors in use
	ClientCPUs       = "client CPUs"
	AllocsPer        = "allocs" // of both processes, for each call or message
	ServerAllocsPer  = "server allocs"
	ClientAllocsPer  = "client allocs"
	ServerGoroutines = "server goroutines"
	ClientGoroutines = "client goroutines"
)

// The metrics of a scenario that records the time of each call or message, in µs.
const (
	P50 = "p50 us"
	P90 = "p90 us"
	P99 = "p99 us"
)

// The metrics of a scenario that measures connections.
const (
	Connections = "connections"
	ServerKiB   = "server KiB/conn" // resident
	ClientKiB   = "client KiB/conn"
)

// Sample is the result of one measurement by a client.
type Sample struct {
	N       int // calls or messages
	Seconds float64
	Bytes   int     // of all N messages, in one direction
	Times   Metrics // of the N calls; nil if no times were recorded
	More    Metrics // metrics of the scenario's own
}

// longest is the longest time that Times records. Longer times count as longest.
const longest = time.Minute

// Times is a distribution of times.
type Times struct{ *hdrhistogram.Histogram }

// NewTimes makes a distribution with that many significant digits. With three digits, the
// distributions of many callers do not fit into the processor's caches.
func NewTimes(digits int) Times { return Times{hdrhistogram.New(1, int64(longest), digits)} }

// Add records one time.
func (t Times) Add(d time.Duration) {
	_ = t.RecordValue(min(max(int64(d), 1), int64(longest))) // cannot fail: the value is in range
}

// Percentile returns the p-th percentile in µs.
func (t Times) Percentile(p float64) float64 { return Micros(time.Duration(t.ValueAtPercentile(p))) }

// Percentiles returns the percentiles that tables show.
func (t Times) Percentiles() Metrics {
	return Metrics{P50: t.Percentile(50), P90: t.Percentile(90), P99: t.Percentile(99)}
}
