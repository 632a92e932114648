package actor

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// recordFlight records something about an identifier. Loop goroutine.
func (e *endpoint) recordFlight(k FlightKind, what string, errno int32) {
	if f := e.l.flight; f != nil {
		f.Note(e.l.el.Now(), uint64(e.eventBase().ID), k, what, errno)
	}
}

// noteEvent records an event, unless it is one of those that occur for each message.
func (e *endpoint) noteEvent(ev Event) {
	if e.l.flight == nil {
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
	e.recordFlight(FlightEvent, k.String(), errno)
}

// countRefused counts a request that the runtime refuses, and records it.
func (l *loop) countRefused(id *cmid.ID, via *listening, f fate) {
	via.countRequest(f)
	l.flight.Note(l.el.Now(), uint64(id.Handle()), FlightRefusal, f.String(), 0)
}

// dumpFlight outputs the contents of l's recorder, because of why. Any goroutine may call it; it
// does not wait.
func (l *loop) dumpFlight(k FlightKind, why string) {
	now := l.clock()
	if l.flight == nil || !l.rt.dumps.allowDump(k, now) {
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
		h.of.clearWaiting(k)
	}
}

// recordingConfig makes cfg record panics and stalls before it calls cfg's own functions.
func (l *loop) recordingConfig(cfg eventloop.Config) eventloop.Config {
	onPanic, onStall, log := cfg.OnPanic, cfg.OnStall, cfg.Logger
	cfg.OnPanic = func(p eventloop.Panic) {
		l.recordPanic(p.Holder.String())
		if onPanic == nil {
			p.Log(log)
			return
		}
		onPanic(p)
	}
	cfg.OnStall = func(s eventloop.Stall) {
		l.flight.Note(l.clock(), 0, FlightStall, "stalled", 0)
		l.dumpFlight(FlightStall, "stall of "+s.For.Round(time.Millisecond).String()+": "+s.Holder.String())
		if onStall == nil {
			s.Log(log)
			return
		}
		onStall(s)
	}
	return cfg
}

// recordPanic records a panic on the loop, in who.
func (l *loop) recordPanic(who string) {
	l.flight.Note(l.clock(), 0, FlightPanic, "panicked", 0)
	l.dumpFlight(FlightPanic, "panic of "+who)
}
