package perf

import (
	"fmt"
	"io"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/cmid"
)

// Result is the result of one test.
type Result struct {
	Op    Op   `json:"op"`
	Kind  Kind `json:"kind"`
	Size  int  `json:"size"`  // bytes of a message
	Count int  `json:"count"` // measured messages; for latency, round trips or Reads

	Times *Times `json:"latency,omitempty"`
	Rate  *Rate  `json:"bandwidth,omitempty"`
	// CPUUS is the client's processor time per message (see Count) in µs, in user and in kernel
	// mode.
	CPUUS float64 `json:"client_cpu_us"`
	// Path is the path of the client's packets. nil on iWARP.
	Path *Path `json:"path,omitempty"`
}

// Path is cmid.Path.
type Path struct {
	GIDIndex     uint8   `json:"gid_index"`
	GIDType      string  `json:"gid_type"`
	NetDev       string  `json:"gid_netdev"`
	SL           uint8   `json:"service_level"`
	TrafficClass uint8   `json:"traffic_class"`
	MTU          int     `json:"mtu_bytes"`
	AckTimeoutS  float64 `json:"ack_timeout_seconds"` // 0: unlimited
	RetryCount   uint8   `json:"retry_count"`
}

func pathOf(p cmid.Path) *Path {
	if p.GIDType == "" {
		return nil
	}
	return &Path{p.GIDIndex, p.GIDType, p.NetDev, p.SL, p.TrafficClass, p.MTU, p.AckTimeout.Seconds(), p.RetryCount}
}

// String formats the path as the line below a table's head.
func (p *Path) String() string {
	return fmt.Sprintf("GID index %d (%s, %s), service level %d, traffic class %d, MTU %d, ack timeout %.3g s, %d retries",
		p.GIDIndex, p.GIDType, p.NetDev, p.SL, p.TrafficClass, p.MTU, p.AckTimeoutS, p.RetryCount)
}

// Times is a distribution of latencies, in µs, to three significant digits.
type Times struct {
	// Of is the interval that a latency covers: "half round trip" (send, write) or "round trip"
	// (read).
	Of     string  `json:"of"`
	MinUS  float64 `json:"min_us"`
	P50US  float64 `json:"p50_us"`
	P90US  float64 `json:"p90_us"`
	P99US  float64 `json:"p99_us"`
	P999US float64 `json:"p99.9_us"`
	MaxUS  float64 `json:"max_us"`
}

// Rate is a bandwidth.
type Rate struct {
	Depth     int     `json:"depth"` // messages in flight
	Seconds   float64 `json:"seconds"`
	MiBPerS   float64 `json:"mib_per_s"`
	MsgPerSec float64 `json:"messages_per_s"`
}

func (r *run) newResult(n int, took, cpu time.Duration) Result {
	res := Result{Op: r.Op, Kind: r.Kind, Size: r.Size, Count: n, CPUUS: stats.Micros(cpu) / float64(n), Path: r.path}
	if r.Kind == Bandwidth {
		rate := float64(n) / took.Seconds()
		res.Rate = &Rate{Depth: r.Depth, Seconds: took.Seconds(), MiBPerS: rate * float64(r.Size) / (1 << 20), MsgPerSec: rate}
		return res
	}
	part := 2.0
	res.Times = &Times{Of: "half round trip"}
	if r.Op == Read {
		part, res.Times.Of = 1, "round trip"
	}
	us := func(ns int64) float64 { return stats.Micros(time.Duration(ns)) / part }
	at := func(percentile float64) float64 { return us(r.times.ValueAtPercentile(percentile)) }
	t := res.Times
	t.MinUS, t.MaxUS = us(r.times.Min()), us(r.times.Max())
	t.P50US, t.P90US, t.P99US, t.P999US = at(50), at(90), at(99), at(99.9)
	return res
}

// Report has the results of a command, and the parameters of the measurement.
type Report struct {
	Device  string   `json:"device"`
	Level   string   `json:"level"` // always "verbs": no actors
	Wait    string   `json:"wait"`  // how the client waits: block, spin or busy
	CRC     bool     `json:"crc"`
	Local   string   `json:"local"`
	Server  string   `json:"server"`
	Results []Result `json:"results"`
	Error   string   `json:"error,omitempty"` // why the rest is missing
	// Interrupted reports that results are missing, and that the last one may have been measured
	// for a shorter time.
	Interrupted bool `json:"interrupted,omitempty"`
}

// JSON writes the report as one JSON document.
func (r *Report) JSON(w io.Writer) error { return stats.JSON(w, r) }

// Head returns the line above all tables.
func (r *Report) Head() string {
	crc := "no CRC asked for"
	if r.CRC {
		crc = "CRC32c"
	}
	return fmt.Sprintf("%s, verbs level (no actors), client waits: %s, %s, %s to %s", r.Device, r.Wait, crc, r.Local, r.Server)
}

// Row writes a result as a line of its table. If first is true, it writes the table's head first.
func (r *Result) Row(w io.Writer, first bool) {
	if first && r.Path != nil {
		fmt.Fprintf(w, "\n%v\n", r.Path)
	}
	if t := r.Times; t != nil {
		if first {
			fmt.Fprintf(w, "\n%s latency, %s, in us\n%9s %9s %9s %9s %9s %9s %9s %9s %9s\n",
				r.Op, t.Of, "bytes", "count", "min", "p50", "p90", "p99", "p99.9", "max", "CPU/trip")
		}
		fmt.Fprintf(w, "%9d %9d %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n",
			r.Size, r.Count, t.MinUS, t.P50US, t.P90US, t.P99US, t.P999US, t.MaxUS, r.CPUUS)
		return
	}
	if first {
		fmt.Fprintf(w, "\n%s bandwidth\n%9s %9s %9s %12s %12s %9s\n", r.Op, "bytes", "depth", "count", "MiB/s", "messages/s", "CPU us")
	}
	fmt.Fprintf(w, "%9d %9d %9d %12.2f %12.0f %9.2f\n", r.Size, r.Rate.Depth, r.Count, r.Rate.MiBPerS, r.Rate.MsgPerSec, r.CPUUS)
}
