package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Metrics are a measurement's figures by name: those below, and a scenario's own.
type Metrics map[string]float64

// The metrics that every scenario has.
const (
	PerSecond        = "per s"
	MiBPerS          = "MiB/s"
	CPUPer           = "CPU us" // of both processes, for each call or message
	ServerCPUPer     = "server CPU us"
	ClientCPUPer     = "client CPU us"
	ServerCPUs       = "server CPUs" // processors in use
	ClientCPUs       = "client CPUs"
	AllocsPer        = "allocs" // of both processes, for each call or message
	ServerGoroutines = "server goroutines"
	ClientGoroutines = "client goroutines"
)

// The metrics of a scenario whose calls or messages have their times, in µs.
const (
	P50 = "p50 us"
	P90 = "p90 us"
	P99 = "p99 us"
)

// The metrics of a scenario that counts Connections.
const (
	Connections = "connections"
	ServerKiB   = "server KiB/conn" // resident
	ClientKiB   = "client KiB/conn"
)

// Sample is what a client has measured.
type Sample struct {
	N       int // calls or messages
	Seconds float64
	Bytes   int     // of all N messages, one way
	Times   Metrics // of N calls; nil: they have none
	More    Metrics // what else the scenario wants to know
}

// longest is the longest time that Times records. Longer ones count as that.
const longest = time.Minute

// Times is a distribution of times.
type Times struct{ *hdrhistogram.Histogram }

// NewTimes makes a distribution with so many significant digits. With three, those of many callers
// do not fit into the processor's caches.
func NewTimes(digits int) Times { return Times{hdrhistogram.New(1, int64(longest), digits)} }

// Add takes one time.
func (t Times) Add(d time.Duration) {
	_ = t.RecordValue(min(max(int64(d), 1), int64(longest))) // all of these are in its range
}

// Percentile is in µs.
func (t Times) Percentile(p float64) float64 { return Micros(time.Duration(t.ValueAtPercentile(p))) }

// Percentiles are the percentiles that tables show.
func (t Times) Percentiles() Metrics {
	return Metrics{P50: t.Percentile(50), P90: t.Percentile(90), P99: t.Percentile(99)}
}
