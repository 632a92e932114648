package actor

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/flight"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// FlightConfig configures the flight recorder: each loop keeps its last transitions, commands and
// events in memory, and hands them out when something goes wrong.
type FlightConfig struct {
	// Records are how many a loop keeps, of 48 bytes each: 4,096. Negative: there is no recorder.
	Records int
	// Dump gets what a loop has recorded: after a panic of an actor or a callback on the loop, when
	// the loop stalls, and when a peer has broken the protocol; of each of these at most once in 10
	// s, and no more while one waits for the log. It is called on the goroutine that writes the
	// log, so the log waits for it. nil: the last 32 records are logged, at level Warn.
	Dump func(Flight)
}

// Flight is what a loop's flight recorder has. WriteTo writes it as text, and encoding/json as
// JSON.
type Flight = flight.Dump

// FlightRecord is one thing that has happened on a loop. Messages and one-sided operations are not
// recorded: they would leave nothing else in the ring. IDInfo.Traffic counts them.
type FlightRecord = flight.Record

// FlightKind is what kind of thing a FlightRecord is about.
type FlightKind = flight.Kind

// The kinds of FlightRecords.
const (
	FlightTransition = flight.Transition // an identifier has left a state for another
	FlightCommand    = flight.Command    // an identifier was asked for something
	FlightEvent      = flight.Event      // an identifier has reported something
	FlightRefusal    = flight.Refusal    // the runtime has refused a connection request
	FlightEnd        = flight.End        // this side has broken a connection off
	FlightPanic      = flight.Panic      // an actor or a callback on the loop has panicked
	FlightStall      = flight.Stall      // something has occupied the loop for too long
	FlightHandshake  = flight.Handshake  // a step of a secured connection's handshake, or its end

	NumFlightKinds = flight.NumKinds
)

const (
	flightRecords = 4096             // by default
	flightLogged  = 32               // of them, where there is no Dump
	flightEvery   = 10 * time.Second // at most one dump for the same reason
)

// Flight is what the flight recorders have, one for each loop, in their order. It asks no loop, so
// a blocked one is no hindrance. Also after Shutdown. Any goroutine.
func (rt *Runtime) Flight() []Flight {
	all := make([]Flight, 0, len(rt.loops))
	for _, l := range rt.loops {
		all = append(all, dumpOf(l.el.Name(), "asked for", l.clock(), l.flight.Copy(math.MaxInt)))
	}
	return all
}

func dumpOf(loop, why string, at time.Time, c flight.Copy) Flight {
	d := Flight{Loop: loop, Why: why, At: at}
	d.Records, d.Before = c.Records()
	return d
}

// note records something about an identifier. Loop goroutine.
func (it *ident) note(k FlightKind, what string, errno int32) {
	if f := it.l.flight; f != nil {
		f.Note(it.l.el.Now(), uint64(it.base().ID), k, what, errno)
	}
}

// noteEvent records an event, unless it is one of those that come with each message.
func (it *ident) noteEvent(ev Event) {
	if it.l.flight == nil {
		return
	}
	k := ev.Kind()
	switch k {
	case states.KindReceived, states.KindSent, states.KindSendFailed, states.KindWritable,
		states.KindReadDone, states.KindWriteDone, states.KindAtomicDone, states.KindAccessError:
		return
	}
	errno := int32(0)
	if f, ok := ev.(Failure); ok {
		errno = errnoOf(f.Base().Err)
	}
	it.note(FlightEvent, k.String(), errno)
}

// noteCommand records a command, unless it is a one-sided operation.
func (it *ident) noteCommand(cmd Command) {
	if _, often := cmd.(oneSided); !often && it.l.flight != nil {
		it.note(FlightCommand, opName(cmd), 0)
	}
}

// refused counts a request that the runtime refuses, and records it.
func (l *loop) refused(id *cmid.ID, via *listening, f fate) {
	via.count(f)
	l.flight.Note(l.el.Now(), uint64(id.Handle()), FlightRefusal, f.String(), 0)
}

func errnoOf(err error) int32 {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return int32(errno)
	}
	return 0
}

// dumps limits how often there is a dump, and how many wait for those before them to return. Any
// goroutine.
type dumps struct {
	mu    sync.Mutex
	last  [FlightStall + 1]time.Time
	waits [FlightStall + 1]bool
}

// due reports whether there may be another one, which then waits.
func (d *dumps) due(k FlightKind, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := d.last[k]; d.waits[k] || !last.IsZero() && now.Sub(last) < flightEvery {
		return false
	}
	d.last[k], d.waits[k] = now, true
	return true
}

// handed notes that one does not wait any more.
func (d *dumps) handed(k FlightKind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits[k] = false
}

// dump hands out what l's recorder has, because of why. Any goroutine; it does not wait.
func (l *loop) dump(k FlightKind, why string) {
	now := l.clock()
	if l.flight == nil || !l.rt.dumps.due(k, now) {
		return
	}
	h := &dumpHandler{kind: k, loop: l.el.Name(), why: why, at: now, to: l.rt.cfg.Flight.Dump, of: &l.rt.dumps}
	if h.to != nil {
		h.copied = l.flight.Copy(math.MaxInt)
	} else {
		h.copied, h.log = l.flight.Copy(flightLogged), l.rt.cfg.Logger.Handler()
	}
	rec := slog.NewRecord(now, slog.LevelWarn, "rdma: flight recorder: "+k.String(), 0)
	if !l.rt.journal.Put(context.Background(), h, rec) {
		h.of.handed(k)
	}
}

// dumpHandler is a dump on its way, as the journal takes it.
type dumpHandler struct {
	slog.Handler // nil: the journal calls Handle only
	kind         FlightKind
	loop, why    string
	at           time.Time
	copied       flight.Copy
	to           func(Flight) // nil: it is logged
	log          slog.Handler
	of           *dumps
}

// Handle hands it over, on the goroutine that writes the log.
func (h *dumpHandler) Handle(ctx context.Context, rec slog.Record) error {
	h.of.handed(h.kind)
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

// watched has a loop's panics and stalls recorded, before cfg's own functions hear of them.
func (l *loop) watched(cfg eventloop.Config) eventloop.Config {
	onPanic, onStall, log := cfg.OnPanic, cfg.OnStall, cfg.Logger
	cfg.OnPanic = func(p eventloop.Panic) {
		l.failed(p.Holder.String())
		if onPanic == nil {
			p.Log(log)
			return
		}
		onPanic(p)
	}
	cfg.OnStall = func(s eventloop.Stall) {
		l.flight.Note(l.clock(), 0, FlightStall, "stalled", 0)
		l.dump(FlightStall, "stall of "+s.For.Round(time.Millisecond).String()+": "+s.Holder.String())
		if onStall == nil {
			s.Log(log)
			return
		}
		onStall(s)
	}
	return cfg
}

// failed records that who, on the loop, has panicked.
func (l *loop) failed(who string) {
	l.flight.Note(l.clock(), 0, FlightPanic, "panicked", 0)
	l.dump(FlightPanic, "panic of "+who)
}
