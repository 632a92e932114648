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

// note records something about an identifier. Loop goroutine.
func (e *endpoint) note(k FlightKind, what string, errno int32) {
	if f := e.l.flight; f != nil {
		f.Note(e.l.el.Now(), uint64(e.base().ID), k, what, errno)
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
	e.note(FlightEvent, k.String(), errno)
}

// refused counts a request that the runtime refuses, and records it.
func (l *loop) refused(id *cmid.ID, via *listening, f fate) {
	via.count(f)
	l.flight.Note(l.el.Now(), uint64(id.Handle()), FlightRefusal, f.String(), 0)
}

// dump outputs the contents of l's recorder, because of why. Any goroutine may call it; it does not
// wait.
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

// watched makes cfg record a loop's panics and stalls, before it calls cfg's own functions.
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

// failed records a panic on the loop, in who.
func (l *loop) failed(who string) {
	l.flight.Note(l.clock(), 0, FlightPanic, "panicked", 0)
	l.dump(FlightPanic, "panic of "+who)
}
