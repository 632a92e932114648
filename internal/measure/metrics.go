package measure

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
