package measure

import (
	"maps"
	"runtime"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
)

// usage is the resources that a process has consumed so far, and those that it holds.
type usage struct {
	CPU        time.Duration // in user and in kernel mode
	Mallocs    uint64        // objects allocated
	Goroutines int
	More       Metrics // the metrics of Service.Report
}

func currentUsage() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{CPU: stats.CPUTime(), Mallocs: m.Mallocs, Goroutines: runtime.NumGoroutine()}
}

// since returns the resources consumed since before, and those that the process holds now.
func (u usage) since(before usage) usage {
	u.CPU -= before.CPU
	u.Mallocs -= before.Mallocs
	return u
}

// report is a sample with the client's usage for it.
type report struct {
	Sample Sample
	Usage  usage
}

func (r report) newMetrics(server usage) Metrics {
	n, client := max(float64(r.Sample.N), 1), r.Usage
	sc, cc := stats.Micros(server.CPU), stats.Micros(client.CPU)
	m := Metrics{
		PerSecond: n / r.Sample.Seconds,
		MicrosPer: 1e6 * r.Sample.Seconds / n,
		MiBPerS:   float64(r.Sample.Bytes) / r.Sample.Seconds / (1 << 20),
		CPUPer:    (sc + cc) / n, ServerCPUPer: sc / n, ClientCPUPer: cc / n,
		ServerCPUs: sc / 1e6 / r.Sample.Seconds, ClientCPUs: cc / 1e6 / r.Sample.Seconds,
		AllocsPer:       float64(client.Mallocs+server.Mallocs) / n,
		ServerAllocsPer: float64(server.Mallocs) / n, ClientAllocsPer: float64(client.Mallocs) / n,
		ServerGoroutines: float64(server.Goroutines), ClientGoroutines: float64(client.Goroutines),
	}
	for _, more := range []Metrics{r.Sample.Times, r.Sample.More, server.More} {
		maps.Copy(m, more)
	}
	return m
}
