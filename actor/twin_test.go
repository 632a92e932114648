package actor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

func TestTwinConversation(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		for i := range 100 {
			p.client.send(p.c, NewSend(fmt.Appendf(nil, "%d", i)))
		}
		for i := range 100 {
			if g := p.server.any(); g.data != fmt.Sprint(i) {
				w.Fatalf("message %d is %v", i, g)
			}
		}
		p.server.send(p.s, &Close{})
		for _, side := range []*probe{p.server, p.client} {
			end := until[*Closed](side)
			c := end[len(end)-1].msg.(*Closed)
			if k := kinds(end); k != "Disconnected Closed" || c.Err != nil || c.Unknown+c.Unsent != 0 {
				w.Errorf("the end: %v", end)
			}
		}
	})
}

// stage brings an identifier into a state.
type stage struct {
	name  string
	want  states.State
	build func(w *world, owner *probe) *actor.PID
}

// stages are all states a test can hold an identifier in. Events that lead there are taken from
// the owner's probe.
var stages = []stage{
	{"idle", states.Idle, func(w *world, o *probe) *actor.PID { return w.rt.CreateID(o.pid, IDConfig{}) }},
	{"bound", states.Bound, func(w *world, o *probe) *actor.PID {
		id := w.rt.CreateID(o.pid, IDConfig{})
		o.send(id, &cmid.BindAddr{Addr: MustAddr(here + ":0")})
		next[*cmid.Bound](o)
		return id
	}},
	{"addr-query", states.AddrQuery, func(w *world, o *probe) *actor.PID {
		w.f.Silence(there)
		id := w.rt.CreateID(o.pid, IDConfig{})
		o.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
		return id
	}},
	{"addr-resolved", states.AddrResolved, func(w *world, o *probe) *actor.PID {
		id := w.rt.CreateID(o.pid, IDConfig{})
		o.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
		next[*cmid.AddrResolved](o)
		return id
	}},
	{"route-resolved", states.RouteResolved, resolved},
	{"listening", states.Listening, func(w *world, o *probe) *actor.PID { return w.listen(o) }},
	{"connecting", states.Connecting, func(w *world, o *probe) *actor.PID {
		id := resolved(w, o)
		w.f.Silence(there)
		o.send(id, &Connect{})
		return id
	}},
	{"connect-requested", states.ConnectRequested, func(w *world, o *probe) *actor.PID {
		w.listen(o)
		w.rt.sys.Root.Send(w.rt.CreateID(nil, IDConfig{}), &Dial{Addr: there + ":7471"})
		_, id := next[*ConnectRequest](o)
		return id
	}},
	{"connected", states.Connected, func(w *world, o *probe) *actor.PID {
		w.listen(o)
		w.rt.sys.Root.Send(w.rt.CreateID(nil, IDConfig{}), &Dial{Addr: there + ":7471"})
		_, id := next[*ConnectRequest](o)
		o.send(id, &Accept{})
		next[*Established](o)
		return id
	}},
}

func resolved(w *world, o *probe) *actor.PID {
	id := w.rt.CreateID(o.pid, IDConfig{})
	o.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
	next[*cmid.AddrResolved](o)
	o.send(id, &cmid.ResolveRoute{})
	next[*cmid.RouteResolved](o)
	return id
}

// commands returns one of each; what cannot be a command comes last.
func commands(o *probe) []any {
	return []any{
		&cmid.BindAddr{Addr: MustAddr(here + ":0")}, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")}, &cmid.ResolveRoute{}, &Listen{},
		&Connect{}, &Accept{}, &Reject{}, &cmid.Establish{}, &Disconnect{}, &DestroyID{}, &cmid.SetOption{Option: cmid.OptionTOS, Value: 4},
		&cmid.Notify{}, &cmid.JoinMulticast{Addr: MustAddr("224.0.0.9:0")}, &cmid.LeaveMulticast{Addr: MustAddr("224.0.0.9:0")},
		&cmid.GetAddrInfo{Node: "127.0.0.1", Service: "80"}, &Dial{Addr: there + ":7471"}, &Serve{Addr: here + ":7472"}, &Close{},
		&Handover{To: o.pid}, &Handover{}, &cmid.SetIBPath{Paths: make([]byte, cmid.PathLen)}, &cmid.ResolveIBService{ServiceID: 1}, &cmid.WriteCMEvent{},
		&Call{Fn: func(*cmid.ID) error { return nil }}, &Call{},
		Listen{},
		"hello", &struct{}{},
	}
}

// Every command in every state has exactly one answer, and every identifier one Closed, its last
// event.
func TestOneAnswerPerCommand(t *testing.T) {
	for name, flavor := range flavors {
		for _, st := range stages {
			for i := range commands(&probe{}) {
				t.Run(fmt.Sprintf("%s/%s/%d", name, st.name, i), func(t *testing.T) {
					t.Parallel()
					inWorld(t, flavor, func(w *world) { oneAnswer(w, st, i) })
				})
			}
		}
	}
}

func oneAnswer(w *world, st stage, command int) {
	owner, asker := w.probe(), w.probe()
	id := st.build(w, owner)
	settle()
	if got, _ := w.state(id); got != st.want {
		w.Fatalf("the stage is %v, want %v", got, st.want)
	}
	cmd := commands(asker)[command]
	asker.send(id, cmd)
	time.Sleep(time.Minute) // past every deadline
	settle()
	if n := len(asker.got); n != 1 {
		var all []got
		for len(asker.got) > 0 {
			all = append(all, <-asker.got)
		}
		// A Handover makes the asker the owner, which gets everything.
		if h, ok := cmd.(*Handover); !ok || h.To == nil || n == 0 {
			w.Errorf("%T was answered %d times: %v", cmd, n, all)
		}
	}
	w.sys.Root.Send(id, &DestroyID{})
	settle()
	o := owner
	if h, ok := cmd.(*Handover); ok && h.To != nil {
		o = asker
	}
	closed := 0
	var last got
	for len(o.got) > 0 {
		if last = <-o.got; last.sender != nil && last.sender.Equal(id) {
			if _, ok := last.msg.(*Closed); ok {
				closed++
			} else if closed > 0 {
				w.Errorf("%v after Closed", last)
			}
		}
	}
	if o == owner && closed != 1 {
		w.Errorf("%T: Closed was reported %d times", cmd, closed)
	}
	asker.send(id, &Listen{})
	settle()
	if o == owner {
		for len(asker.got) > 1 {
			<-asker.got
		}
		if _, ok := asker.any().msg.(*actor.DeadLetterResponse); !ok {
			w.Error("a dead identifier does not answer with DeadLetterResponse")
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		for _, tt := range []struct {
			send any
			want string
		}{
			{"x", "got string, want a command such as *rdma.Listen"},
		} {
			p.send(id, tt.send)
			f, _ := next[*CommandFailed](p)
			is(w, f, unix.EINVAL)
			if !contains(f.Error(), tt.want) {
				w.Errorf("%q does not say %q", f.Error(), tt.want)
			}
		}
	})
}

// A command that is sent by value is carried out like its pointer: the ampersand is easily
// forgotten, and the compiler does not miss it.
func TestCommandsByValue(t *testing.T) {
	for _, c := range commandsOf() {
		t.Run(opName(c), func(t *testing.T) {
			inWorld(t, states.IWARP, func(w *world) {
				p := w.connect()
				var answers []string
				for _, m := range []any{c, reflect.ValueOf(c).Elem().Interface()} {
					asker := w.probe()
					asker.send(w.rt.CreateID(nil), m)
					a := asker.any().msg
					answers = append(answers, fmt.Sprintf("%T", a))
					if f, ok := a.(Failure); ok {
						answers[len(answers)-1] += ": " + Brief(f)
						if reflect.TypeOf(f.Failed()) != reflect.TypeOf(c) {
							w.Errorf("%T fails as %T", m, f.Failed())
						}
					}
				}
				if answers[0] != answers[1] {
					w.Errorf("by pointer: %s, by value: %s", answers[0], answers[1])
				}
				p.client.send(p.c, *NewSend([]byte("by value")))
				if g := p.server.any(); g.data != "by value" {
					w.Errorf("got %v", g)
				}
			})
		})
	}
}

func TestOwnerDeathDestroys(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		w.sys.Root.Stop(p.client.pid)
		end := until[*Closed](p.server)
		if k := kinds(end); k != "Disconnected Closed" {
			w.Errorf("the peer of a dead owner got %s", k)
		}
		settle()
		if _, ok := w.state(p.c); ok {
			w.Error("the identifier has survived its owner")
		}
	})
}

func TestConnectionsSurviveTheirListener(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		p.server.send(p.listener, &DestroyID{})
		if _, from := next[*Closed](p.server); !from.Equal(p.listener) {
			w.Error("Closed of somebody else")
		}
		p.client.send(p.c, NewSend([]byte("still there?")))
		if g := p.server.any(); g.data != "still there?" {
			w.Errorf("got %v", g)
		}
	})
}

func TestHandover(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		heir := w.farProbe()
		p.client.send(p.c, NewSend([]byte("one")))
		if g := p.server.any(); g.data != "one" {
			w.Fatalf("got %v", g)
		}
		p.server.send(p.s, &Handover{To: heir.pid})
		next[*Done](p.server)
		p.client.send(p.c, NewSend([]byte("two")))
		if g := heir.any(); g.data != "two" {
			w.Fatalf("the heir got %v", g)
		}
		w.sys.Root.Stop(p.server.pid) // the owner of the listener only
		settle()
		if s, ok := w.state(p.s); !ok || s != states.Connected {
			w.Errorf("after the old owner's death: %v, %v", s, ok)
		}
		w.sys.Root.Stop(heir.pid)
		if k := kinds(until[*Closed](p.client)); k != "Disconnected Closed" {
			w.Errorf("after the heir's death the peer got %s", k)
		}
	})
}

func TestHandlerPerConnection(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		notes := make(chan string, 100)
		handler := actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *ConnectRequest:
				ctx.Respond(&Accept{})
			case *Received:
				ctx.Respond(NewSend(m.Data))
			case *Closed, *actor.Stopped:
				notes <- fmt.Sprintf("%T", m)
			}
		})
		lis, client := w.farProbe(), w.probe()
		w.listen(lis, IDConfig{Handler: handler})
		for range 3 {
			id := w.rt.CreateID(client.pid, IDConfig{})
			client.send(id, &Dial{Addr: there + ":7471"})
			next[*Established](client)
			client.send(id, NewSend([]byte("x")))
			next[*Received](client)
			client.send(id, &Close{})
			until[*Closed](client)
			if a, b := <-notes, <-notes; a != "*cmid.Closed" || b != "*actor.Stopped" {
				w.Errorf("the handler ended with %s, %s", a, b)
			}
		}
		lis.quiet()
	})
}

func TestDeadlines(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.probe()
		w.f.Silence(there)
		id := w.rt.CreateID(p.pid, IDConfig{})
		took := elapsed(func() {
			p.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
			f, _ := next[*AddrError](p)
			is(w, f, unix.ETIMEDOUT)
		})
		if s, _ := w.state(id); took != 2*time.Second || s != states.Bound {
			w.Errorf("address resolution gave up after %v in state %v", took, s)
		}
		w.f.Unsilence(there)
		p.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
		next[*cmid.AddrResolved](p) // a time-out of the device's does not cost the identifier
		p.send(id, &cmid.ResolveRoute{})
		next[*cmid.RouteResolved](p)
		w.f.Silence(there)
		took = elapsed(func() {
			p.send(id, &Connect{})
			f, _ := next[*Unreachable](p)
			is(w, f, unix.ETIMEDOUT)
		})
		if took > 10*time.Second {
			w.Errorf("connect gave up after %v", took)
		}
		c, _ := next[*Closed](p)
		is(w, c.Err, unix.ETIMEDOUT)
	})
}

// A peer that is refused before the owner of a secured listener answers learns the reason: that
// there is no room, although it is not authenticated, and that the owner is late, once it is.
func TestSecuredRefusalsHaveReasons(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		cfg := connecting(w, "alice")
		w.listen(server, peopled(w, nil))
		for range 3 {
			client.send(w.rt.CreateID(client.pid, cfg), &Dial{Addr: there + ":7471", Timeout: time.Minute})
		}
		for _, want := range []string{"too many requests or connections", "not answered the request in time", "not answered the request in time"} {
			all := until[*Rejected](client) // Closed of another one may be before it
			f := all[len(all)-1].msg.(*Rejected)
			if !contains(f.Error(), want) || errors.Is(f, ErrPeerLimits) || f.PrivateData != nil {
				w.Errorf("the client got %v, with the private data %q; want %q", f, f.PrivateData, want)
			}
		}
	}, Config{Limits: Limits{PendingRequests: 3}})
}

func TestUnansweredRequest(t *testing.T) {
	for want, opts := range map[time.Duration]IDConfig{8 * time.Second: {}, time.Second: {AcceptTimeout: time.Second}} {
		onFlavors(t, func(w *world) {
			server, client := w.farProbe(), w.probe()
			w.listen(server, opts)
			took := elapsed(func() {
				client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471", Timeout: time.Minute})
				next[*ConnectRequest](server)
				c, _ := next[*Closed](server)
				is(w, c.Err, unix.ETIMEDOUT)
			})
			if took != want {
				w.Errorf("rejected after %v, want %v", took, want)
			}
			// with the reason, and without private data: it is worth another attempt
			f, _ := next[*Rejected](client)
			if !contains(f.Error(), "not answered the request in time") || contains(f.Error(), "does not speak") || f.PrivateData != nil {
				w.Errorf("the client got %v, with the private data %q", f, f.PrivateData)
			}
		})
	}
}

// The context ends at every moment of a connection's life: the identifier is destroyed, with the
// context's cause, and nothing is left.
func TestCancelAtEveryStep(t *testing.T) {
	cause := errors.New("changed my mind")
	for name, flavor := range flavors {
		for step := range 16 {
			t.Run(fmt.Sprintf("%s/%d", name, step), func(t *testing.T) {
				inWorld(t, flavor, func(w *world) {
					w.f.Delay(10 * time.Millisecond)
					server, client := w.farProbe(), w.probe()
					server.reactWith(func(ctx actor.Context) {
						switch m := ctx.Message().(type) {
						case *ConnectRequest:
							ctx.Respond(&Accept{})
						case *Received:
							ctx.Respond(NewSend(m.Data))
						}
					})
					w.listen(server)
					client.reactWith(func(ctx actor.Context) {
						switch ctx.Message().(type) {
						case *Established:
							ctx.Respond(NewSend([]byte("x")))
						case *Received:
							ctx.Respond(&Close{})
						}
					})
					ctx, cancel := context.WithCancelCause(context.Background())
					defer cancel(nil)
					id := w.rt.CreateID(client.pid, IDConfig{Context: ctx})
					client.send(id, &Dial{Addr: there + ":7471"})
					time.Sleep(time.Duration(step) * 7 * time.Millisecond)
					settle()
					over := false
					if _, ok := w.state(id); !ok {
						over = true // the conversation has come to its own end
					}
					cancel(cause)
					end := until[*Closed](client)
					if c := end[len(end)-1].msg.(*Closed); over != (c.Err == nil) || c.Err != nil && !errors.Is(c.Err, cause) {
						w.Errorf("step %d: over %v, closed because of %v", step, over, c.Err)
					}
					time.Sleep(time.Minute)
					settle()
					for _, i := range append(w.rt.Inspect(), w.far.Inspect()...) {
						if i.State != states.Listening {
							w.Errorf("step %d: left over: %+v", step, i)
						}
					}
				})
			})
		}
	}
}

func TestCreateFails(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		w.f.RunOut(unix.EMFILE)
		p := newProbe(w, w.sys, w.rt.OnLoop(), func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				id := w.rt.CreateID(ctx.Self(), IDConfig{})
				ctx.Request(id, &cmid.BindAddr{Addr: MustAddr(here + ":0")})
			}
		})
		w.sys.Root.Send(p.pid, "go")
		next[string](p)
		f, _ := next[*CommandFailed](p)
		is(w, f, unix.EMFILE)
		c, _ := next[*Closed](p)
		is(w, c.Err, unix.EMFILE)
	})
}

func TestConnectionLimit(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		next[*Rejected](client) // the listener there is the one that is allowed
		next[*Closed](client)
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &cmid.BindAddr{Addr: MustAddr(here + ":0")})
		next[*cmid.Bound](client)
		w.rt.CreateID(client.pid, IDConfig{})
		c, _ := next[*Closed](client)
		is(w, c.Err, unix.EMFILE)
	}, Config{Limits: Limits{Connections: 1}})
}

// An owner that replaces an identifier when it gets Closed finds room for the new one, also where
// there is room for one only.
func TestClosedMakesRoom(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		first := true
		p := newProbe(w, w.sys, w.rt.OnLoop(), func(ctx actor.Context) {
			if _, ok := ctx.Message().(*Closed); ok && first {
				first = false
				ctx.Request(w.rt.CreateID(ctx.Self(), IDConfig{}), &cmid.BindAddr{Addr: MustAddr(here + ":0")})
			}
		})
		p.send(w.rt.CreateID(p.pid, IDConfig{}), &DestroyID{})
		next[*Closed](p)
		next[*cmid.Bound](p)
	}, Config{Limits: Limits{Connections: 1}})
}

func TestDeviceRemoval(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		w.f.RemoveDevice("mem0")
		end := until[*Closed](p.client)
		if k := kinds(end); k != "DeviceRemoval Closed" {
			w.Errorf("the removed side got %s", k)
		}
		is(w, end[len(end)-1].msg.(*Closed).Err, unix.ENODEV)
		if k := kinds(until[*Closed](p.server)); k != "Disconnected Closed" {
			w.Errorf("the peer got %s", k)
		}
		settle()
		w.onLoop(w.rt, func(l *loop) {
			if len(l.Devices) != 0 {
				w.Error("what belonged to the device is still there")
			}
		})
	})
}
