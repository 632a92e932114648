package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// fault panics, or ends the goroutine once, wherever user code is called, while it is armed.
type fault struct {
	exits bool   // it ends the goroutine
	where string // the callback that leaves
	armed atomic.Bool
	left  atomic.Int64
}

// at is called by every callback.
func (f *fault) at(where string) {
	if where != f.where || !f.armed.Load() {
		return
	}
	f.left.Add(1)
	if !f.exits {
		panic("for the test")
	}
	if f.armed.CompareAndSwap(true, false) {
		runtime.Goexit()
	}
}

// owner returns the Receive of an actor whose every message is a separate callback.
func (f *fault) owner(side string, react func(ctx actor.Context)) func(ctx actor.Context) {
	return func(ctx actor.Context) {
		f.at(fmt.Sprintf("%s %T", side, ctx.Message()))
		f.at(side)
		react(ctx)
	}
}

// faultyLogger is a logger whose every line is a callback, if it may fail on the loop.
type faultyLogger struct {
	f     *fault
	level slog.Level
}

func (h faultyLogger) Enabled(_ context.Context, l slog.Level) bool {
	h.f.at("Logger.Enabled")
	return l >= h.level
}

func (h faultyLogger) Handle(context.Context, slog.Record) error {
	h.f.at("Logger.Handle")
	return nil
}

func (h faultyLogger) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h faultyLogger) WithGroup(string) slog.Handler      { return h }

// callbacks are all callbacks that the runtime has, and the messages that an owner gets.
var callbacks = []string{
	"Handler", "OnInit", "Route", "Place", "Authorize", "Call", "Renew", "Dump", "Logger.Enabled", "Logger.Handle",
	"DeadLetterEvent", "SupervisorEvent", "Panicked", "any event",
	"Observer.Transition", "Observer.Event", "Observer.Credit", "Observer.Moved", "Observer.Begun", "Observer.Answered",
	"server", "server *actor.Started", "server *cmid.ConnectRequest", "server *cmid.Established", "server *actor.Received",
	"server *cmid.Disconnected", "server *cmid.Closed", "server *actor.Stopping", "server *actor.Stopped",
	"client", "client *actor.Started", "client *cmid.Established", "client *actor.Received", "client *actor.Sent", "client *cmid.Done",
	"client *cmid.Disconnected", "client *cmid.Closed", "client *actor.Stopping", "client *actor.Stopped",
	"bad", "bad *actor.SendFailed", "bad *actor.Restarting", "bad *cmid.Closed",
}

// faultObserver makes each of its methods a callback.
type faultObserver struct{ f *fault }

func (o faultObserver) Transition(*actor.PID, Handle, states.State, states.State) {
	o.f.at("Observer.Transition")
}
func (o faultObserver) Event(*actor.PID, cmid.Event)             { o.f.at("Observer.Event") }
func (o faultObserver) Credit(*actor.PID, Handle, Credits)       { o.f.at("Observer.Credit") }
func (o faultObserver) Moved(*actor.PID, Handle, string, string) { o.f.at("Observer.Moved") }
func (o faultObserver) Begun(*actor.PID, Handle, Command)        { o.f.at("Observer.Begun") }
func (o faultObserver) Answered(*actor.PID, Handle, Command, cmid.Event) {
	o.f.at("Observer.Answered")
}

// User code that panics at any callback affects no others: a connection of others, on the same
// loops, goes on, the next one is served, and Shutdown leaves nothing. One that ends its goroutine
// on a loop ends that loop.
func TestUserCodeFails(t *testing.T) {
	homes := map[string]func(*Runtime) actor.PropsOption{"OnLoop": (*Runtime).OnLoop, "OffLoop": (*Runtime).OffLoop}
	for _, where := range callbacks {
		for name, exits := range map[string]bool{"panic": false, "exit": true} {
			for home, at := range homes {
				if home == "OffLoop" && !strings.HasPrefix(where, "client") && !strings.HasPrefix(where, "bad") {
					continue // where the clients run makes no difference to it
				}
				for device, flavor := range flavors {
					t.Run(fmt.Sprintf("%s/%s/%s/%s", where, name, home, device), func(t *testing.T) {
						f := &fault{exits: exits, where: where}
						inWorld(t, flavor, func(w *world) { failUserCode(w, f, at, home == "OnLoop") }, Config{
							Observer: faultObserver{f}, Loops: make([]eventloop.Config, 2), Flight: FlightConfig{Dump: func(Flight) { f.at("Dump") }},
							Logger: slog.New(faultyLogger{f, slog.LevelDebug}),
						})
					})
				}
			}
		}
	}
}

// failUserCode makes user code of connections fail. They are secured on iWARP only.
func failUserCode(w *world, f *fault, at func(*Runtime) actor.PropsOption, onLoop bool) {
	sec := w.flavor == states.IWARP
	w.subscribe(func(ev any) {
		switch ev.(type) {
		case *actor.DeadLetterEvent:
			f.at("DeadLetterEvent")
		case *actor.SupervisorEvent:
			f.at("SupervisorEvent")
		case *Panicked:
			f.at("Panicked")
		}
		f.at("any event")
	})
	var cfg IDConfig
	if sec {
		cfg = secured(w)
		cfg.Hint = someHint
	}
	mine := cfg
	if sec {
		mine.Security.Authorize = func(*ConnectRequest) (PeerLimits, *Reject) { f.at("Authorize"); return PeerLimits{}, nil }
		mine.Place = func(uint32) *actor.PID { f.at("Place"); return nil }
	}
	mine.Route = func(*ConnectRequest) (*actor.PID, *Reject) { f.at("Route"); return nil, nil }
	mine.Handler = actor.PropsFromProducer(func() actor.Actor {
		f.at("Handler")
		return actor.ReceiveFunc(f.owner("server", echoing))
	}, actor.WithOnInit(func(actor.Context) { f.at("OnInit") }))
	w.listen(w.farProbe(), mine)
	others := w.connectAt(there+":7472", cfg)
	client := func() {
		w.sys.Root.Spawn(actor.PropsFromFunc(f.owner("client", func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				ctx.Request(w.rt.CreateID(ctx.Self(), cfg), &Dial{Addr: there + ":7471"})
			case *Established:
				for range 40 {
					s := NewSend([]byte("hello"))
					s.Notify, s.Renew = true, func(b []byte) []byte { f.at("Renew"); return b }
					ctx.Respond(s)
				}
				ctx.Respond(&Call{Fn: func(*cmid.ID) error { f.at("Call"); return nil }})
				ctx.Request(ctx.Sender(), &Call{Fn: func(*cmid.ID) error { f.at("Call"); return errors.New("no") }})
				ctx.Respond(&Close{})
			case *Received:
				if len(m.Data) == 0 {
					ctx.Respond(&Close{})
				}
			case *Closed:
				ctx.Stop(ctx.Self())
			}
		}), at(w.rt)))
	}
	gone := w.probe()
	stop(w, w.sys, gone.pid)
	bad := func() { // has what happens of which subscribers, supervisors and dumps are notified
		w.sys.Root.Spawn(actor.PropsFromFunc(f.owner("bad", func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Request(w.rt.CreateID(ctx.Self(), cfg), &Dial{Addr: there + ":7471"})
			case *Established:
				for range 40 { // more than are sent immediately
					s := NewSend([]byte("hello"))
					s.Renew = func([]byte) []byte { panic("for the test") }
					ctx.Respond(s)
				}
				ctx.RequestWithCustomSender(ctx.Sender(), &Grant{}, gone.pid)
				ctx.Send(ctx.Self(), "fail")
			case string:
				ctx.Send(w.rt.CreateID(ctx.Self(), cfg), NewSend(nil))
				panic("for the test")
			case *Closed:
				ctx.Stop(ctx.Self())
			}
		}), at(w.rt)))
	}
	f.armed.Store(true)
	called := func() bool { return f.left.Load() > 0 || !sec && (f.where == "Place" || f.where == "Authorize") }
	// whether a connection moves depends on how many identifiers the loops have just then
	for round := 0; round < 2 || round < 10 && !called(); round++ {
		for range 3 {
			client()
		}
		bad()
		time.Sleep(time.Second)
	}
	time.Sleep(2 * time.Minute) // whatever has a deadline meets it
	f.armed.Store(false)
	if !called() {
		w.Errorf("%s was never called", f.where)
	}
	if f.exits && called() && f.left.Load() > 0 {
		loopEnded(w, f, cfg, others, onLoop)
		return
	}
	others.client.send(others.c, NewSend([]byte("others")))
	if g := others.server.any(); g.data != "others" {
		w.Fatalf("others get %v", g)
	}
	p := w.probe()
	id := w.rt.CreateID(p.pid, cfg)
	p.send(id, &Dial{Addr: there + ":7471"})
	next[*Established](p)
	p.send(id, NewSend([]byte("served")))
	if g := p.any(); g.data != "served" {
		w.Fatalf("got %v", g)
	}
	w.shutDown()
}

// loopEnded checks what one Goexit costs: if it was on a loop, that loop.
func loopEnded(w *world, f *fault, cfg IDConfig, others pair, onLoop bool) {
	w.Helper()
	var ended *loop
	for _, l := range append(slices.Clone(w.rt.loops), w.far.loops...) {
		if l.failErr() == nil {
			continue
		}
		if ended != nil {
			w.Error("two loops have ended")
		}
		ended = l
		if n := l.assigned.Load(); n != 0 {
			w.Errorf("%d identifiers of the loop have not ended: %v", n, l.rt.Inspect())
		}
	}
	// other goroutines call these, too
	off := []string{"Dump", "Logger", "DeadLetterEvent", "SupervisorEvent", "Panicked", "any event"}
	if onLoop && ended == nil && !slices.ContainsFunc(off, func(s string) bool { return strings.HasPrefix(f.where, s) }) {
		w.Error("the loop goes on")
	}
	lost := false
	for id, owner := range map[*actor.PID]*probe{others.c: others.client, others.s: others.server} {
		if _, alive := w.state(id); !alive {
			lost = true
			end := until[*Closed](owner)
			err := end[len(end)-1].msg.(*Closed).Err
			var gone *eventloop.GoexitError
			if w.loopOf(owner.pid) == ended && !errors.As(err, &gone) {
				w.Errorf("Closed has %v", err)
			}
		}
	}
	if lost != (ended != nil && slices.ContainsFunc([]*probe{others.client, others.server}, func(p *probe) bool { return w.loopOf(p.pid) == ended })) {
		w.Errorf("the others' connection is lost: %v", lost)
	}
	again := w.connectAt(there+":7473", cfg)
	again.client.send(again.c, NewSend([]byte("again")))
	if g := again.server.any(); g.data != "again" {
		w.Fatalf("got %v", g)
	}
	for _, rt := range []*Runtime{w.rt, w.far} {
		var gone *eventloop.GoexitError
		if err := rt.Shutdown(w.Context()); errors.As(err, &gone) != (ended != nil && ended.rt == rt) || err != nil && gone == nil {
			w.Errorf("Shutdown returns %v", err)
		}
	}
}

// loopOf returns the loop that an actor runs on.
func (w *world) loopOf(pid *actor.PID) *loop {
	if l := w.rt.loopOf(w.rt.registry.Find(pid)); l != nil {
		return l
	}
	return w.far.loopOf(w.far.registry.Find(pid))
}

// connectAt makes a connection from here to a separate listener.
func (w *world) connectAt(addr string, cfg IDConfig) pair {
	w.Helper()
	p := pair{client: w.probe(), server: w.farProbe()}
	p.listener, _ = listen(p.server, w.far, addr, cfg)
	p.c = w.rt.CreateID(p.client.pid, cfg)
	p.client.send(p.c, &Dial{Addr: addr})
	_, p.s = next[*ConnectRequest](p.server)
	p.server.send(p.s, &Accept{})
	next[*Established](p.server)
	next[*Established](p.client)
	return p
}
