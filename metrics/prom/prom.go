// Package prom exports the metrics of package metrics to Prometheus. It is a separate module.
//
// # Ownership
//
// A collector owns nothing. It may be registered with any number of registries. A registry refuses
// a second one, of another runtime, unless a label distinguishes it: prometheus.WrapRegistererWith.
//
// # Ordering
//
// Scrapes that begin while another one is under way share its answer.
//
// # Errors
//
// A scrape never fails because of a reading: see package metrics. A scrape waits at most for
// metrics.Config.Within.
//
// # Limitations
//
// All values are floats, as everywhere in Prometheus: counters are exact up to 2^53.
package prom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rdmactor/rdmactor/metrics"
)

// collector is a prometheus.Collector.
type collector struct {
	source *metrics.Source
	descs  map[*metrics.Definition]*prometheus.Desc
}

// New makes a collector of the metrics that source reads.
func New(source *metrics.Source) prometheus.Collector {
	c := &collector{source, make(map[*metrics.Definition]*prometheus.Desc)}
	for _, d := range metrics.Definitions() {
		c.descs[d] = prometheus.NewDesc(d.Name(), d.Help, d.Labels, nil)
	}
	return c
}

// Describe sends all metrics that a scrape may contain.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range metrics.Definitions() {
		to <- c.descs[d]
	}
}

// Collect reads the source once.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, s := range c.source.Read(context.Background()) {
		m, err := convertSample(c.descs[s.Definition], &s)
		if err != nil {
			m = prometheus.NewInvalidMetric(c.descs[s.Definition], err)
		}
		to <- m
	}
}

func convertSample(desc *prometheus.Desc, s *metrics.Sample) (prometheus.Metric, error) {
	switch s.Kind {
	case metrics.Histogram:
		buckets := make(map[float64]uint64)
		for bound, calls := range s.Histogram.Octaves {
			buckets[bound.Seconds()] = calls
		}
		return prometheus.NewConstHistogram(desc, s.Histogram.Count(), s.Histogram.Sum().Seconds(), buckets, s.Values...)
	case metrics.Counter:
		return prometheus.NewConstMetric(desc, prometheus.CounterValue, s.Value, s.Values...)
	default:
		return prometheus.NewConstMetric(desc, prometheus.GaugeValue, s.Value, s.Values...)
	}
}
