package metrics

import (
	"strings"

	"github.com/rdmactor/rdmactor/rpc"
)

// Kind specifies how a metric's values change. Its text is Prometheus'.
type Kind string

// The kinds.
const (
	Counter Kind = "counter" // only grows, until its subject has gone
	Gauge   Kind = "gauge"   // goes up and down
	// Histogram counts durations by length. It only grows, too.
	Histogram Kind = "histogram"
)

// Unit is the unit of a metric.
type Unit string

// The units.
const (
	None    Unit = ""
	Seconds Unit = "seconds"
	Bytes   Unit = "bytes"
)

// UCUM returns OpenTelemetry's name of the unit. Counts have an annotation: "1" is for fractions,
// and OpenTelemetry's exporter for Prometheus would call it a ratio.
func (u Unit) UCUM() string {
	switch u {
	case Seconds:
		return "s"
	case Bytes:
		return "By"
	default:
		return "{count}"
	}
}

// Definition is one metric. Its values are Samples.
type Definition struct {
	area   string
	name   string
	Kind   Kind
	Unit   Unit
	Labels []string
	Help   string // one sentence
}

// Name returns the metric's name by Prometheus' conventions: "rdmactor_loop_busy_seconds_total".
func (d *Definition) Name() string {
	name := "rdmactor_" + d.area + "_" + d.name
	if d.Unit != None {
		name += "_" + string(d.Unit)
	}
	if d.Kind == Counter {
		name += "_total"
	}
	return name
}

// Instrument returns the metric's name by OpenTelemetry's conventions: "rdmactor.loop.busy".
func (d *Definition) Instrument() string {
	return "rdmactor." + d.area + "." + d.name
}

// Sample is a value of a metric. There is one for each combination of labels.
type Sample struct {
	*Definition
	Values []string // the labels' values: valid UTF-8 of bounded length
	Value  float64  // a counter's or a gauge's
	// Histogram is a histogram's value. The bounds of its buckets are always the same: Octaves.
	Histogram *rpc.Histogram
}

// mergeSamples returns one sample for each combination of labels. Two devices of a loop, for
// instance, may share a name.
func mergeSamples(samples []Sample) []Sample {
	type key struct {
		def    *Definition
		labels string
	}
	at := make(map[key]int, len(samples))
	one := samples[:0]
	for _, s := range samples {
		k := key{s.Definition, strings.Join(s.Values, "\x00")} // no label contains the separator
		if i, twice := at[k]; twice {
			one[i].Value += s.Value
			continue
		}
		at[k] = len(one)
		one = append(one, s)
	}
	return one
}

// group are the metrics that are read from values of one type.
type group[T any] struct{ metrics []metric[T] }

type metric[T any] struct {
	def   *Definition
	value func(T) float64
}

// addMetric defines a metric.
func (g *group[T]) addMetric(d Definition, value func(T) float64) {
	g.metrics = append(g.metrics, metric[T]{defineMetric(d), value})
}

// appendSamples reads the group from v.
func (g *group[T]) appendSamples(to []Sample, v T, labels ...string) []Sample {
	for _, m := range g.metrics {
		to = append(to, Sample{Definition: m.def, Values: labels, Value: m.value(v)})
	}
	return to
}

var definitions []*Definition

func defineMetric(d Definition) *Definition {
	definitions = append(definitions, &d)
	return &d
}

// Definitions returns all metrics, in the order of docs/metrics.md. They must not be changed.
func Definitions() []*Definition { return definitions }
