package measure

import "github.com/rdmactor/rdmactor/cmd/rdmactor/stats"

// Metrics are the figures of a measurement by name. The names are those below, and those of a
// scenario.
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

// Connections is the metric of a scenario that measures connections: how many there are.
const Connections = "connections"

// Sample is the result of one measurement by a client.
type Sample struct {
	N       int // calls or messages
	Seconds float64
	Bytes   int     // of all N messages, in one direction
	Times   Metrics // of the N calls; nil if no times were recorded
	More    Metrics // the scenario's metrics
}

// Percentiles returns the percentiles of t that tables show.
func Percentiles(t stats.Times) Metrics {
	return Metrics{P50: t.Percentile(50), P90: t.Percentile(90), P99: t.Percentile(99)}
}
