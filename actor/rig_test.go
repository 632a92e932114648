package actor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/iwarp"
)

// patience is how long a test waits for events that should be immediate.
const patience = time.Minute

// testSystem returns an ActorSystem that logs nothing and leaves no goroutine.
func testSystem(tb testing.TB) *actor.ActorSystem {
	tb.Helper()
	sys := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	tb.Cleanup(sys.Shutdown)
	return sys
}

// stop stops actors and waits until they have stopped.
func stop(tb testing.TB, sys *actor.ActorSystem, pids ...*actor.PID) {
	tb.Helper()
	for _, pid := range pids {
		if err := sys.Root.StopFuture(pid).Wait(); err != nil {
			tb.Fatalf("stop %v: %v", pid, err)
		}
	}
}

// one returns the given config; zero: none is given.
func one[C any](given []C) (c C) {
	if len(given) > 0 {
		c = given[0]
	}
	return c
}

// openIWARP opens a runtime over the embedded device. Its deadlines are of real time. Those that a
// test leaves open are as long as its patience, because a busy machine would meet short ones.
func openIWARP(tb testing.TB, sys *actor.ActorSystem, cfg ...Config) *Runtime {
	tb.Helper()
	c := one(cfg)
	c.Device = iwarp.New(iwarp.Config{RequestTimeout: patience, ReplyTimeout: patience})
	for _, d := range []*time.Duration{&c.Timeouts.Address, &c.Timeouts.Route, &c.Timeouts.Connect, &c.Timeouts.Request, &c.Timeouts.Close} {
		*d = cmp.Or(*d, patience)
	}
	return openRuntime(tb, sys, c)
}

// openRuntime opens a runtime that is shut down, empty, when the test ends.
func openRuntime(tb testing.TB, sys *actor.ActorSystem, cfg Config) *Runtime {
	tb.Helper()
	rt, err := Open(sys, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		select {
		case <-rt.shutdown.done: // the test has, and looked at the error
		default:
			if err := rt.Shutdown(ctx); err != nil {
				tb.Errorf("shutdown: %v", err)
			}
		}
		checkEmpty(tb, rt)
	})
	return rt
}

// checkEmpty looks for resources that a runtime still holds after its shutdown.
func checkEmpty(tb testing.TB, rt *Runtime) {
	tb.Helper()
	if n := rt.count.Load(); n != 0 {
		tb.Errorf("%d identifiers are still counted after Shutdown", n)
	}
	stranger := new(limits.Stranger)
	if _, ok := rt.strangers.Enter(stranger, 1, time.Time{}); !ok {
		tb.Error("peers that are not authenticated are still counted after Shutdown")
	}
	rt.strangers.Leave(stranger)
	if rt.identities.Take(limits.Person{}, limits.May{Memory: func() bool { return true }}, 1, time.Now()) != 0 {
		tb.Error("peers with identities are still counted after Shutdown")
	}
	rt.identities.Free(limits.Person{})
	for _, l := range rt.loops {
		if len(l.ids) != 0 || !l.requests.MayLocal(0, 1) {
			tb.Errorf("after Shutdown loop %s has %d identifiers, or requests that nobody has answered", l.el.Name(), len(l.ids))
		}
		if assigned, coming := l.assigned.Load(), l.coming.Load(); assigned != 0 || coming != 0 {
			tb.Errorf("after Shutdown %d identifiers are counted on loop %s, and %d on their way there", assigned, l.el.Name(), coming)
		}
		if len(l.Persons) != 0 {
			tb.Errorf("after Shutdown %d persons occupy memory of loop %s", len(l.Persons), l.el.Name())
		}
		if l.MemoryBudget != rt.cfg.Limits.Memory {
			tb.Errorf("after Shutdown loop %s has not got back %d bytes for one-sided operations", l.el.Name(),
				rt.cfg.Limits.Memory-l.MemoryBudget)
		}
		if l.RecvBudget.Free != rt.cfg.Limits.ReceiveMemory || l.SendBudget.Free != rt.cfg.Limits.SendMemory || l.HeldBudget.Free != rt.cfg.Limits.SendMemory {
			tb.Errorf("after Shutdown loop %s has not got all its memory back: %d of %d bytes to receive into, %d and %d short to send from",
				l.el.Name(), l.RecvBudget.Free, rt.cfg.Limits.ReceiveMemory,
				rt.cfg.Limits.SendMemory-l.SendBudget.Free, rt.cfg.Limits.SendMemory-l.HeldBudget.Free)
		}
	}
}

// keep retains a message until the test ends: Shutdown waits for it.
func keep(tb testing.TB, m *Received) {
	m.Retain()
	tb.Cleanup(m.Release)
}

// got is a message as a probe received it.
type got struct {
	msg    any
	sender *actor.PID
	data   string // of a *Received
}

func (g got) String() string {
	switch m := g.msg.(type) {
	case *Received:
		return fmt.Sprintf("Received(%q)", g.data)
	case *Closed:
		return fmt.Sprintf("Closed(%v, %d/%d/%d)", m.Err, m.Delivered, m.Unsent, m.Unknown)
	case Failure:
		return fmt.Sprintf("%T(%v)", m, m)
	}
	return fmt.Sprintf("%T", g.msg)
}

// probe is an owner that records its messages, and then passes them to react.
type probe struct {
	tb    testing.TB
	sys   *actor.ActorSystem
	pid   *actor.PID
	got   chan got
	react atomic.Pointer[func(ctx actor.Context)]
}

// newProbe spawns a probe; where it runs is an option such as rt.OnLoop().
func newProbe(tb testing.TB, sys *actor.ActorSystem, where actor.PropsOption, react func(ctx actor.Context)) *probe {
	tb.Helper()
	p := &probe{tb: tb, sys: sys, got: make(chan got, 4096)}
	if react != nil {
		p.reactWith(react)
	}
	props := actor.PropsFromFunc(p.receive)
	if where != nil {
		props.Configure(where)
	}
	p.pid = sys.Root.Spawn(props)
	return p
}

func (p *probe) receive(ctx actor.Context) {
	react := p.react.Load() // first: the reader of g from got may set another, for the next message
	g := got{msg: ctx.Message(), sender: ctx.Sender()}
	if m, ok := g.msg.(*Received); ok && m != nil {
		g.data = string(m.Data)
	}
	if _, ok := g.msg.(actor.SystemMessage); !ok {
		if _, ok := g.msg.(actor.AutoReceiveMessage); !ok {
			p.got <- g
		}
	}
	if react != nil {
		(*react)(ctx)
	}
}

// reactWith sets the probe's reaction to its messages from now on.
func (p *probe) reactWith(react func(ctx actor.Context)) { p.react.Store(&react) }

// send sends msg with the probe as the sender.
func (p *probe) send(to *actor.PID, msg any) { p.sys.Root.RequestWithCustomSender(to, msg, p.pid) }

// any returns the next message.
func (p *probe) any() got {
	p.tb.Helper()
	select {
	case g := <-p.got:
		return g
	case <-time.After(patience):
		p.tb.Fatal("nothing came")
		panic("unreachable")
	}
}

// next returns the next message, which has to be a T.
func next[T any](p *probe) (T, *actor.PID) {
	p.tb.Helper()
	g := p.any()
	m, ok := g.msg.(T)
	if !ok {
		p.tb.Fatalf("got %v, want %T", g, m)
	}
	return m, g.sender
}

// until collects the messages up to and including the first T.
func until[T any](p *probe) []got {
	p.tb.Helper()
	var all []got
	for {
		g := p.any()
		all = append(all, g)
		if _, ok := g.msg.(T); ok {
			return all
		}
	}
}

// quiet fails if a message has come.
func (p *probe) quiet() {
	p.tb.Helper()
	select {
	case g := <-p.got:
		p.tb.Errorf("unexpected %v", g)
	default:
	}
}

// kinds returns the messages' types in order, for comparing.
func kinds(gs []got) string {
	var names []string
	for _, g := range gs {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", g.msg), "*cmid."), "*actor."))
	}
	return strings.Join(names, " ")
}

// listen makes owner listen on addr.
func listen(p *probe, rt *Runtime, addr string, cfg ...IDConfig) (id *actor.PID, at string) {
	p.tb.Helper()
	id = rt.CreateID(p.pid, one(cfg))
	p.send(id, &Serve{Addr: addr})
	l, _ := next[*Listening](p)
	return id, l.Local.String()
}

// pair is a connection between two probes.
type pair struct {
	client, server *probe
	c, s           *actor.PID // the identifiers
	listener       *actor.PID
}

// connect makes a connection on loopback.
func connect(tb testing.TB, rt *Runtime, server, client *probe, cfg ...IDConfig) pair {
	tb.Helper()
	return connectOn(tb, rt, "127.0.0.1", server, client, cfg...)
}

// connectOn is connect at an address of the host.
func connectOn(tb testing.TB, rt *Runtime, host string, server, client *probe, cfg ...IDConfig) pair {
	tb.Helper()
	lis, at := listen(server, rt, host+":0", cfg...)
	c := rt.CreateID(client.pid, one(cfg))
	client.send(c, &Dial{Addr: at})
	_, s := next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	next[*Established](client)
	return pair{client, server, c, s, lis}
}

// turn calls fn in a turn of rt's first loop. There a loop's reports on itself are immediate;
// elsewhere Inspect and Loops give up on a loop that a busy machine keeps waiting.
func turn(tb testing.TB, rt *Runtime, fn func()) {
	tb.Helper()
	done := make(chan struct{})
	if err := rt.loops[0].el.Post(func() {
		defer close(done)
		fn()
	}); err != nil {
		tb.Fatal(err)
	}
	<-done
}

// is fails unless err is want.
func is(tb testing.TB, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("got the error %v, want %v", err, want)
	}
}

// wheres returns the places an owner may run.
func wheres(rt *Runtime) map[string]actor.PropsOption {
	return map[string]actor.PropsOption{"on the loop": rt.OnLoop(), "off the loop": rt.OffLoop(), "plain": func(*actor.Props) {}}
}

func contains(s, sub string) bool { return strings.Contains(s, sub) }
