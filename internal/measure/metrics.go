package measure

import "maps"

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

// report is a sample, and what the client used for it.
type report struct {
	Sample Sample
	Usage  usage
}

func (r report) metrics(server usage) Metrics {
	n, client := max(float64(r.Sample.N), 1), r.Usage
	sc, cc := Micros(server.CPU), Micros(client.CPU)
	m := Metrics{
		PerSecond: n / r.Sample.Seconds,
		MiBPerS:   float64(r.Sample.Bytes) / r.Sample.Seconds / (1 << 20),
		CPUPer:    (sc + cc) / n, ServerCPUPer: sc / n, ClientCPUPer: cc / n,
		ServerCPUs: sc / 1e6 / r.Sample.Seconds, ClientCPUs: cc / 1e6 / r.Sample.Seconds,
		AllocsPer:        float64(client.Mallocs+server.Mallocs) / n,
		ServerGoroutines: float64(server.Goroutines), ClientGoroutines: float64(client.Goroutines),
	}
	if conns := r.Sample.More[Connections]; conns > 0 {
		m[ServerKiB] = float64(server.RSS) / 1024 / conns
		m[ClientKiB] = float64(client.RSS) / 1024 / conns
	}
	for _, more := range []Metrics{r.Sample.Times, r.Sample.More, server.More} {
		maps.Copy(m, more)
	}
	return m
}
