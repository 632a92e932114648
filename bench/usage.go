package main

import (
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// usage is what a process has used, and what it holds.
type usage struct {
	CPU        time.Duration // in user and in kernel mode
	Mallocs    uint64        // objects allocated
	Goroutines int
	RSS        uint64 // bytes
}

func used() usage {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs, runtime.NumGoroutine(), residentBytes()}
}

// since is what was used after before, and what is held now.
func (u usage) since(before usage) usage {
	u.CPU -= before.CPU
	u.Mallocs -= before.Mallocs
	return u
}

func residentBytes() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(f[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// sample is what a client has measured.
type sample struct {
	N       int // calls or messages
	Seconds float64
	Bytes   int                // of all N messages, one way
	Times   map[string]float64 // µs, of N calls; nil: they have none
	More    map[string]float64 // what else the scenario wants to know, by the metric's name
}

// report is a sample, and what the client used for it.
type report struct {
	Sample sample
	Usage  usage
}

// metrics are a measurement's figures by name: those below, and a scenario's own.
type metrics map[string]float64

// The metrics that every scenario has.
const (
	perSecond = "per s"
	mibPerS   = "MiB/s"
	p50       = "p50 us"
	p90       = "p90 us"
	p99       = "p99 us"
	cpuPer    = "CPU us" // of both processes, for each call or message
	allocsPer = "allocs" // likewise
)

func (r report) metrics(server usage) metrics {
	n := max(float64(r.Sample.N), 1)
	m := metrics{
		perSecond: n / r.Sample.Seconds,
		mibPerS:   float64(r.Sample.Bytes) / r.Sample.Seconds / (1 << 20),
		cpuPer:    micros(r.Usage.CPU+server.CPU) / n,
		allocsPer: float64(r.Usage.Mallocs+server.Mallocs) / n,
	}
	maps.Copy(m, r.Sample.Times)
	maps.Copy(m, r.Sample.More)
	m[serverGoroutines], m[clientGoroutines] = float64(server.Goroutines), float64(r.Usage.Goroutines)
	if conns := r.Sample.More[connections]; conns > 0 {
		m[serverKiB] = float64(server.RSS) / 1024 / conns
		m[clientKiB] = float64(r.Usage.RSS) / 1024 / conns
	}
	return m
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// longest is the longest time that a histogram knows.
const longest = time.Minute

// newHistogram has two significant digits: three would not fit the processor's caches where there is one for each of many callers.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(longest), 2) }

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 1), int64(longest))) // it knows all of these
}

func percentiles(h *hdrhistogram.Histogram) map[string]float64 {
	at := func(p float64) float64 { return micros(time.Duration(h.ValueAtPercentile(p))) }
	return map[string]float64{p50: at(50), p90: at(90), p99: at(99)}
}
