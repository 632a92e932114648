package stats

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Longest is the longest time that Times records. Longer times count as Longest.
const Longest = time.Minute

// Times is a distribution of times.
type Times struct{ *hdrhistogram.Histogram }

// NewTimes makes a distribution with that many significant digits. With three digits, the
// distributions of many callers do not fit into the processor's caches.
func NewTimes(digits int) Times { return Times{hdrhistogram.New(1, int64(Longest), digits)} }

// Add records one time.
func (t Times) Add(d time.Duration) {
	_ = t.RecordValue(min(max(int64(d), 1), int64(Longest))) // cannot fail: the value is in range
}

// Percentile returns the p-th percentile in µs.
func (t Times) Percentile(p float64) float64 { return Micros(time.Duration(t.ValueAtPercentile(p))) }
