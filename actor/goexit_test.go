package actor

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/states"
)

// leavings are the ways in which code panics.
var leavings = map[string]func(){
	"panic":     func() { panic("for the test") },
	"nil panic": func() { panic(nil) }, // as users' code may
}

// A callback ends a loop of the embedded device, in the middle of a burst: its identifiers end
// with the error, others go on, a retained message stays readable, and Shutdown leaves no file and
// no memory.
func TestLoopEndedOnTheEmbeddedDevice(t *testing.T) {
	leak.Files(t)
	reports := make(chan eventloop.Panic, 10)
	loops := []eventloop.Config{{OnPanic: func(p eventloop.Panic) { reports <- p }}, {}}
	sys := testSystem(t)
	rt := openIWARP(t, sys, Config{Loops: loops})
	const bursts = 4
	var pairs []pair
	for range 2 * bursts { // OnLoop spreads the servers over the loops, the clients' loops follow
		pairs = append(pairs, connect(t, rt, newProbe(t, sys, rt.OnLoop(), nil), newProbe(t, sys, rt.OffLoop(), nil)))
	}
	bad := rt.loops[0]
	kept := make(chan *Received, 1)
	for _, p := range pairs {
		p.server.reactWith(func(ctx actor.Context) {
			switch m, ok := ctx.Message().(*Received); {
			case !ok:
			case string(m.Data) == "keep":
				kept <- m.Retain()
			case string(m.Data) == "exit":
				runtime.Goexit()
			default:
				ctx.Respond(NewSend(m.Data))
			}
		})
	}
	on := func(p pair) *loop { return rt.loopOf(rt.registry.Find(p.server.pid)) }
	first := slices.IndexFunc(pairs, func(p pair) bool { return on(p) == bad })
	pairs[first].client.send(pairs[first].c, NewSend([]byte("keep")))
	m := <-kept
	for _, p := range pairs {
		for range 20 {
			p.client.send(p.c, NewSend([]byte("burst")))
		}
	}
	pairs[first].client.send(pairs[first].c, NewSend([]byte("exit")))
	if p := <-reports; p.Stack == nil || !strings.Contains(p.Holder.Name, pairs[first].server.pid.Id) {
		t.Errorf("reported %v", p.Holder)
	}
	for _, p := range pairs {
		var gone *eventloop.GoexitError
		if on(p) == bad {
			end := until[*Closed](p.server)
			if c := end[len(end)-1].msg.(*Closed); !errors.As(c.Err, &gone) {
				t.Errorf("the end: %v", c)
			}
			until[*Closed](p.client)
		}
	}
	good := connect(t, rt, newProbe(t, sys, rt.OnLoop(), nil), newProbe(t, sys, rt.OffLoop(), nil))
	good.client.send(good.c, NewSend([]byte("fine")))
	if g := good.server.any(); g.data != "fine" {
		t.Errorf("got %v", g)
	}
	if string(m.Data) != "keep" {
		t.Errorf("the retained message has %q", m.Data)
	}
	p := newProbe(t, sys, rt.OnLoopOf(pairs[first].server.pid), nil)
	rt.CreateID(p.pid, IDConfig{})
	sys.Root.Stop(p.pid)
	m.Release()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var gone *eventloop.GoexitError
	err := rt.Shutdown(ctx)
	if !errors.As(err, &gone) || gone.Holder.Name != "actor "+pairs[first].server.pid.Id || len(reports) > 0 {
		t.Errorf("Shutdown: %v, %d further reports", err, len(reports))
	}
}

// A Call whose Fn does not return is answered, before Closed, and nothing else is affected.
func TestCallThatDoesNotReturn(t *testing.T) {
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				p, other := w.connect(), w.probe()
				id := w.rt.CreateID(other.pid, IDConfig{})
				_, err := Ask[*Done](context.Background(), w.rt, p.c, &Call{Fn: func(*cmid.ID) error {
					leave()
					return nil
				}})
				var pe *PanicError
				if !errors.As(err, &pe) {
					w.Errorf("answered with %v, want a PanicError", err)
				}
				end := until[*Closed](p.client)
				if c := end[len(end)-1].msg.(*Closed); !errors.As(c.Err, &pe) {
					w.Errorf("the end: %v", end)
				}
				until[*Closed](p.server)
				other.send(id, &cmid.BindAddr{Addr: MustAddr(here + ":0")})
				next[*cmid.Bound](other)
			})
		})
	}
}

// An owner whose Receive does not return fails, as by a panic. It does no more harm than a panic,
// neither to its identifiers nor to others', nor to its loop. The delivery that was under way ends.
func TestReceiveThatDoesNotReturn(t *testing.T) {
	for home, where := range map[string]func(*Runtime) actor.PropsOption{"OnLoop": (*Runtime).OnLoop, "OffLoop": (*Runtime).OffLoop} {
		for name, leave := range leavings {
			t.Run(home+"/"+name, func(t *testing.T) {
				onFlavors(t, func(w *world) {
					good := w.connect()
					w.sys.Root.Stop(good.listener)
					until[*Closed](good.server)
					p := w.connect()
					bad := newProbe(w, w.sys, where(w.far), func(ctx actor.Context) {
						if m, ok := ctx.Message().(*Received); ok && string(m.Data) == "leave" {
							leave()
						}
					})
					p.server.send(p.s, &Handover{To: bad.pid})
					next[*Done](p.server)
					for range 3 {
						w.inTurn(func(ctx actor.Context) { // they arrive in one turn
							ctx.Send(p.c, NewSend([]byte("leave")))
							ctx.Send(good.c, NewSend([]byte("fine")))
						})
						next[*Received](bad)
						if m := good.server.any(); m.data != "fine" {
							w.Fatalf("got %v", m)
						}
					}
					bad.send(bad.pid, "still there")
					next[string](bad)
				})
			})
		}
	}
}

// commandsOf returns all commands, as new makes them.
func commandsOf() []Command {
	return []Command{
		&cmid.BindAddr{}, &cmid.ResolveAddr{}, &cmid.ResolveRoute{}, &Listen{}, &Connect{}, &Accept{}, &Reject{}, &cmid.Establish{}, &Disconnect{},
		&DestroyID{}, &cmid.SetOption{}, &cmid.Notify{}, &cmid.JoinMulticast{}, &cmid.LeaveMulticast{}, &cmid.SetIBPath{}, &cmid.ResolveIBService{}, &cmid.WriteCMEvent{},
		&cmid.GetAddrInfo{}, &Dial{}, &Serve{}, &Close{}, &Handover{}, &Call{}, &Read{}, &Write{}, &FetchAdd{}, &CompareSwap{},
		&AllocMemory{}, &Grant{}, &Revoke{}, &FreeMemory{},
	}
}

// A command that is a nil pointer is answered and does nothing.
func TestNilCommands(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		for _, c := range commandsOf() {
			missing := reflect.Zero(reflect.TypeOf(c)).Interface()
			p.client.send(p.c, missing)
			f, _ := next[*CommandFailed](p.client)
			is(w, f, unix.EINVAL)
		}
		p.client.send(p.c, (*Send)(nil))
		f, _ := next[*SendFailed](p.client)
		is(w, f, unix.EINVAL)
		p.client.send(p.c, NewSend([]byte("as ever")))
		if g := p.server.any(); g.data != "as ever" {
			w.Errorf("got %v", g)
		}
	})
}

// A command in which nothing was filled in is answered in every state, and kills nothing.
func TestEmptyCommands(t *testing.T) {
	onFlavors(t, func(w *world) {
		for _, c := range commandsOf() {
			for name, begin := range map[string]func(p *probe) *actor.PID{
				"idle": func(p *probe) *actor.PID { return w.rt.CreateID(p.pid, IDConfig{}) },
				"bound": func(p *probe) *actor.PID {
					id := w.rt.CreateID(p.pid, IDConfig{})
					p.send(id, &cmid.BindAddr{Addr: MustAddr(here + ":0")})
					next[*cmid.Bound](p)
					return id
				},
				"resolved": func(p *probe) *actor.PID {
					id := w.rt.CreateID(p.pid, IDConfig{})
					p.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
					next[*cmid.AddrResolved](p)
					p.send(id, &cmid.ResolveRoute{})
					next[*cmid.RouteResolved](p)
					return id
				},
				"connected": func(p *probe) *actor.PID {
					server := w.farProbe()
					lis, at := listen(server, w.far, there+":0")
					id := w.rt.CreateID(p.pid, IDConfig{})
					p.send(id, &Dial{Addr: at})
					_, s := next[*ConnectRequest](server)
					server.send(s, &Accept{})
					next[*Established](p)
					w.sys.Root.Stop(lis)
					return id
				},
			} {
				p := w.probe()
				id := begin(p)
				cmd := reflect.New(reflect.TypeOf(c).Elem()).Interface()
				p.send(id, cmd)
				settle()
				p.send(id, &DestroyID{})
				for _, g := range until[*Closed](p) {
					var pe *PanicError
					if f, ok := g.msg.(Failure); ok && errors.As(f, &pe) {
						w.Errorf("%s: %T panics: %v", name, cmd, pe.Value)
					}
					if f, ok := g.msg.(*Closed); ok && errors.As(f.Err, &pe) {
						w.Errorf("%s: %T ends in a panic: %v", name, cmd, pe.Value)
					}
				}
			}
		}
	})
}

// An identifier that gets another's answers does not answer them: two could go on forever.
func TestIdentifierAsOwner(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.probe()
		a := w.rt.CreateID(p.pid, IDConfig{})
		b := w.rt.CreateID(a, IDConfig{})
		w.sys.Root.RequestWithCustomSender(b, "nonsense", a)
		w.sys.Root.RequestWithCustomSender(a, "nonsense", b)
		settle() // would never return
		p.quiet()
	})
}
