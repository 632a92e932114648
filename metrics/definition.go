package metrics

import (
	"strings"

	"github.com/rdmactor/rdmactor/rpc"
)

// Kind says how values of a metric follow one another. Its text is Prometheus'.
type Kind string

// The kinds.
const (
	Counter Kind = "counter" // only grows, until what it counts has gone
	Gauge   Kind = "gauge"   // goes up and down
	// Histogram counts durations by how long they are. It only grows, too.
	Histogram Kind = "histogram"
)

// Unit is what a metric is measured in.
type Unit string

// The units.
const (
	None    Unit = ""
	Seconds Unit = "seconds"
	Bytes   Unit = "bytes"
)

// UCUM is the unit as OpenTelemetry wants it. What is counted has an annotation: "1" is for
// fractions, and its exporter for Prometheus would call it a ratio.
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

// Name is the metric's name by Prometheus' conventions: "rdmactor_loop_busy_seconds_total".
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

// Instrument is the metric's name by OpenTelemetry's conventions: "rdmactor.loop.busy".
func (d *Definition) Instrument() string {
	return "rdmactor." + d.area + "." + d.name
}

// Sample is a value of a metric. There is one for each combination of labels.
type Sample struct {
	*Definition
	Values []string // of Labels: valid UTF-8 of bounded length
	Value  float64  // of a counter or a gauge
	// Histogram is that of a metric of this kind. The bounds of its buckets are always the same:
	// Octaves.
	Histogram *rpc.Histogram
}

// merged has one sample for each combination of labels. Two devices of a loop, for instance, may
// have one name.
func merged(samples []Sample) []Sample {
	type key struct {
		def    *Definition
		labels string
	}
	at := make(map[key]int, len(samples))
	one := samples[:0]
	for _, s := range samples {
		k := key{s.Definition, strings.Join(s.Values, "\x00")} // which no label has
		if i, twice := at[k]; twice {
			one[i].Value += s.Value
			continue
		}
		at[k] = len(one)
		one = append(one, s)
	}
	return one
}

// group is the metrics that are read from values of one type.
type group[T any] struct{ metrics []metric[T] }

type metric[T any] struct {
	def   *Definition
	value func(T) float64
}

// add defines a metric.
func (g *group[T]) add(d Definition, value func(T) float64) {
	g.metrics = append(g.metrics, metric[T]{define(d), value})
}

// samples reads the group from v.
func (g *group[T]) samples(to []Sample, v T, labels ...string) []Sample {
	for _, m := range g.metrics {
		to = append(to, Sample{Definition: m.def, Values: labels, Value: m.value(v)})
	}
	return to
}

var definitions []*Definition

func define(d Definition) *Definition {
	definitions = append(definitions, &d)
	return &d
}

// Definitions are all metrics, in the order of docs/metrics.md. They are not to be changed.
func Definitions() []*Definition { return definitions }
