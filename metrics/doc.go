// Package metrics defines what a monitoring system may watch of a program's runtime, its node and
// its calls, and reads it. metrics/prom gives it to Prometheus and metrics/otel to OpenTelemetry;
// both are modules of their own, so that nobody else needs their dependencies. docs/metrics.md
// lists every metric; it is generated from Definitions.
//
//	source := metrics.New(metrics.Config{Runtime: rt})
//	registry.MustRegister(prom.New(source))
//
// # Cost
//
// Nothing is counted for this package alone: what the loops count anyway is read when somebody asks.
// One reading asks each loop once, and the loop then looks at each of its identifiers. No
// series is kept for an identifier. The series are as many as loops, pools, states and listeners;
// listeners, peers and methods are bounded (Config).
//
// # Ownership
//
// A Source owns nothing of what it reads: the program shuts runtimes, nodes and servers down when
// it likes, also in the middle of a reading. A Source refers to a server or a client until a reading
// finds that it is not returned any more, and has no call in flight. A Source needs no closing.
//
// # Ordering
//
// Readings that begin while another one is under way share its answer. Figures of different
// loops are not of the same instant.
//
// # Errors
//
// There are none. What did not answer within Config.Within, or has panicked, is reported as
// it was read last, and rdmactor_read_failures_total counts that, once for each reading: while one
// does not end, rdmactor_read_duration_seconds grows. A loop that is blocked is reported as it
// answered last; rdmactor_loop_blocked says which one that is.
//
// # Limitations
//
// A peer with a label of its own that was forgotten and has come back begins anew; the sum over all
// labels has both. A server or a client that was not returned for a while, with no call in flight, is
// counted anew when it comes back, besides what it had counted; one that comes and goes between two
// readings is not counted. Proto.Actor's own metrics stay off: they raise the cost of a message from
// 1 µs to between 9 and 16.
package metrics
