package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest time that Times knows. Longer ones count as that.
const longest = time.Minute

// Times is a distribution of times.
type Times struct{ *hdrhistogram.Histogram }

// NewTimes has so many significant digits. Three do not fit the processor's caches where there is
// one for each of many callers.
func NewTimes(digits int) Times { return Times{hdrhistogram.New(1, int64(longest), digits)} }

// Add takes one time.
func (t Times) Add(d time.Duration) {
	_ = t.RecordValue(min(max(int64(d), 1), int64(longest))) // it knows all of these
}

// Percentile is in µs.
func (t Times) Percentile(p float64) float64 { return Micros(time.Duration(t.ValueAtPercentile(p))) }

// Percentiles are those that tables show.
func (t Times) Percentiles() Metrics {
	return Metrics{P50: t.Percentile(50), P90: t.Percentile(90), P99: t.Percentile(99)}
}
