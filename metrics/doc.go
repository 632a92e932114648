// Package metrics defines the metrics of a program's runtime, its node and its calls, and reads
// them for a monitoring system. metrics/prom exports them to Prometheus and metrics/otel to
// OpenTelemetry; both are separate modules, so that only their users need their dependencies.
// docs/metrics.md lists every metric; it is generated from Definitions.
//
//	source := metrics.New(metrics.Config{Runtime: rt})
//	registry.MustRegister(prom.New(source))
//
// # Cost
//
// Nothing is counted for this package alone: a reading returns counts that the loops keep anyway.
// One reading asks each loop once, and the loop then looks at each of its identifiers. No series is
// kept for an identifier. There are as many series as loops, pools, states and listeners;
// listeners, peers and methods are bounded (Config).
//
// # Ownership
//
// A Source does not own the parts that it reads: the program may shut down runtimes, nodes and
// servers at any time, even in the middle of a reading. A Source refers to a server or a client
// until a reading finds that it is no longer returned, and has no call in flight. A Source needs no
// closing.
//
// # Ordering
//
// Readings that begin while another one is under way share its answer. Figures of different loops
// are not of the same instant.
//
// # Errors
//
// There are none. A part that did not answer within Config.Within, or has panicked, is reported as
// it was read last, and rdmactor_read_failures_total counts that, once for each reading: while one
// does not end, rdmactor_read_duration_seconds grows. A blocked loop is reported as it answered
// last; rdmactor_loop_blocked names it.
//
// # Limitations
//
// A forgotten peer with its own label that returns is counted from zero; the sum over all labels
// contains both counts. A server or a client that was not returned for a while, with no call in
// flight, is counted from zero when it is returned again, in addition to its earlier counts; one
// that appears and disappears between two readings is not counted. Proto.Actor's own metrics stay
// off: they raise the cost of a message from 1 µs to between 9 and 16.
package metrics
