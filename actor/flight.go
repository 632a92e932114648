package actor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/flight"
)

// FlightConfig configures the flight recorder: each loop keeps its last transitions, commands and
// events in memory, and outputs them when something goes wrong.
type FlightConfig struct {
	// Records is how many a loop keeps, of 48 bytes each; 0: 4,096. Negative: there is no recorder.
	Records int
	// Dump receives the records of a loop: after a panic of an actor or a callback on the loop,
	// when the loop stalls, and when a peer has broken the protocol; for each of these reasons at
	// most once in 10 s, and never while an earlier dump for the same reason waits for the log. It
	// is called on the goroutine that writes the log, so the log waits for it. nil: the last 32
	// records are logged, at level Warn.
	Dump func(Flight)
}

// Flight is the contents of a loop's flight recorder. WriteTo writes it as text, and encoding/json
// as JSON. Its fields:
//
//	Loop    string
//	Why     string // the reason for the dump, such as "stall"
//	At      time.Time
//	Before  uint64 // records before the first that were overwritten or left out
//	Records []FlightRecord // oldest first
type Flight = flight.Dump

// FlightRecord describes one incident on a loop. Messages and one-sided operations are not
// recorded: they would leave nothing else in the ring. IDInfo.Traffic counts them. Its fields:
//
//	At    time.Time // when the loop's turn began
//	ID    uint64 // the Handle of the identifier; 0: the loop itself
//	Kind  FlightKind
//	What  string // such as "connecting -> connected", "connect", "Established"
//	Errno int32 // the cause; 0: nothing failed
type FlightRecord = flight.Record

// FlightKind is the kind of incident that a FlightRecord describes.
type FlightKind = flight.Kind

// The kinds of FlightRecords.
const (
	FlightTransition = flight.Transition // an identifier entered another state
	FlightCommand    = flight.Command    // an identifier received a command
	FlightEvent      = flight.Event      // an identifier reported an event
	FlightRefusal    = flight.Refusal    // the runtime refused a connection request
	FlightEnd        = flight.End        // this side broke a connection off
	FlightPanic      = flight.Panic      // an actor or a callback on the loop panicked
	FlightStall      = flight.Stall      // something occupied the loop for too long
	FlightHandshake  = flight.Handshake  // a step of a secured connection's handshake, or its end

	NumFlightKinds = flight.NumKinds
)

const (
	flightRecords = 4096             // by default
	flightLogged  = 32               // of them, if there is no Dump
	flightEvery   = 10 * time.Second // at most one dump for the same reason
)

func dumpOf(loop, why string, at time.Time, c flight.Copy) Flight {
	d := Flight{Loop: loop, Why: why, At: at}
	d.Records, d.Before = c.Records()
	return d
}

// dumps limits how often there is a dump, and how many wait for those before them to return. Any
// goroutine may use it.
type dumps struct {
	mu    sync.Mutex
	last  [FlightStall + 1]time.Time
	waits [FlightStall + 1]bool
}

// allowDump reports whether another dump is allowed, and then counts it as waiting.
func (d *dumps) allowDump(k FlightKind, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := d.last[k]; d.waits[k] || !last.IsZero() && now.Sub(last) < flightEvery {
		return false
	}
	d.last[k], d.waits[k] = now, true
	return true
}

// clearWaiting records that a dump is no longer waiting.
func (d *dumps) clearWaiting(k FlightKind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits[k] = false
}

// dumpHandler is a dump on its way, in the form that the journal takes.
type dumpHandler struct {
	slog.Handler // nil: the journal calls Enabled and Handle only
	kind         FlightKind
	loop, why    string
	at           time.Time
	copied       flight.Copy
	to           func(Flight) // nil: it is logged
	log          slog.Handler
	of           *dumps
}

// Enabled reports true: only Handle can decide whether the dump is logged.
func (*dumpHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle outputs the dump, on the goroutine that writes the log.
func (h *dumpHandler) Handle(ctx context.Context, rec slog.Record) error {
	h.of.clearWaiting(h.kind)
	d := dumpOf(h.loop, h.why, h.at, h.copied)
	if h.to != nil {
		h.to(d)
		return nil
	}
	if !h.log.Enabled(ctx, rec.Level) {
		return nil
	}
	rec = rec.Clone()
	rec.AddAttrs(slog.String("loop", d.Loop), slog.String("why", d.Why), slog.String("records", d.String()))
	return h.log.Handle(ctx, rec)
}
