package actor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// addresses returns a resolver for tests.
func addresses(list ...string) func(context.Context, string, string, *cmid.AddrInfo) ([]cmid.AddrInfo, error) {
	return func(_ context.Context, _, _ string, hints *cmid.AddrInfo) ([]cmid.AddrInfo, error) {
		var infos []cmid.AddrInfo
		for _, s := range list {
			ai := cmid.AddrInfo{Src: hints.Src, Dst: MustAddr(s)}
			if hints.Flags&cmid.RAIPassive != 0 {
				ai = cmid.AddrInfo{Src: MustAddr(s)}
			}
			infos = append(infos, ai)
		}
		return infos, nil
	}
}

// A name has several addresses. Each is tried with a new identifier, which has the same PID and
// the same options.
func TestDialTriesEachAddress(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.rt.resolve = addresses("10.0.0.66:7471", there+":1", there+":7471")
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		id := w.rt.CreateID(client.pid, IDConfig{})
		client.send(id, &cmid.SetOption{Option: cmid.OptionTOS, Value: 8})
		next[*Done](client)
		client.send(id, &Dial{Addr: "there:7471", PrivateData: []byte("hi")})
		r, s := next[*ConnectRequest](server)
		if string(r.PrivateData) != "hi" {
			w.Errorf("the request carries %q", r.PrivateData)
		}
		server.send(s, &Accept{})
		e, from := next[*Established](client)
		if !from.Equal(id) || e.Peer != MustAddr(there+":7471") {
			w.Errorf("connected to %v by %v", e.Peer, from)
		}
		client.send(id, NewSend([]byte("x")))
		next[*Established](server)
		next[*Received](server)
		client.send(id, &Close{})
		until[*Closed](client)
	})
}

func TestDialReportsTheLastAddress(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.rt.resolve = addresses(there+":1", there+":2")
		p := w.probe()
		p.send(w.rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: "there:7471"})
		f, _ := next[Failure](p) // Rejected, or as soft-iWARP has it a Connect that failed
		is(w, f, unix.ECONNREFUSED)
		if !contains(f.Error(), there+":2") {
			w.Errorf("it does not name the last address: %v", f)
		}
		if _, ok := f.Failed().(*Dial); !ok {
			w.Errorf("what failed is %T", f.Failed())
		}
		next[*Closed](p)
		p.quiet()
	})
}

// An application that rejects has answered: no other address is tried.
func TestDialStopsAtAnAnswer(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.rt.resolve = addresses(there+":7471", there+":7471")
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: "there:7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Reject{PrivateData: []byte("no")})
		next[*Closed](server)
		r, _ := next[*Rejected](client)
		if string(r.PrivateData) != "no" || r.Remedy != "" {
			w.Errorf("rejected with %q, and %q, want no advice", r.PrivateData, r.Remedy)
		}
		next[*Closed](client)
		settle()
		server.quiet()
	})
}

func TestDialTimeoutIsForAllOfIt(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.rt.resolve = addresses("10.0.0.66:1", "10.0.0.67:1", "10.0.0.68:1")
		p := w.probe()
		took := elapsed(func() {
			p.send(w.rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: "there:1", Timeout: 5 * time.Second})
			f, _ := next[*AddrError](p)
			is(w, f, unix.ETIMEDOUT)
			next[*Closed](p)
		})
		if took != 5*time.Second {
			w.Errorf("it took %v", took)
		}
	})
}

// A longer Timeout does not lengthen a phase. The failure's advice takes into account that the
// identifier is lost.
func TestDialPhasesKeepTheirTimeouts(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.probe()
		for _, timeout := range []time.Duration{0, time.Minute} {
			took := elapsed(func() {
				p.send(w.rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: "10.0.0.66:1", Timeout: timeout})
				f, _ := next[*AddrError](p)
				is(w, f, unix.ETIMEDOUT)
				if contains(f.Error(), "may resolve again") || !contains(f.Error(), "create a new identifier to try again") {
					w.Errorf("the identifier is closed, and the advice is: %v", f)
				}
				next[*Closed](p)
			})
			if took != 2*time.Second {
				w.Errorf("with Timeout %v it took %v, want ResolveAddr's 2 s", timeout, took)
			}
		}
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, &cmid.ResolveAddr{Dst: MustAddr("10.0.0.66:1")})
		if f, _ := next[*AddrError](p); !contains(f.Error(), "may resolve again") {
			w.Errorf("the identifier is bound, and the advice is: %v", f)
		}
	})
}

func TestServeTriesEachAddress(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.far.resolve = addresses("10.0.0.66:7471", there+":7471")
		p := w.farProbe()
		id := w.far.CreateID(p.pid, IDConfig{})
		p.send(id, &Serve{Addr: "there:7471", Backlog: 3})
		l, _ := next[*Listening](p)
		if l.Local != MustAddr(there+":7471") || l.Backlog != 3 {
			w.Errorf("listening on %v, backlog %d", l.Local, l.Backlog)
		}
	})
}

// Of a name's addresses an IPv4 one is taken before the others, as net.Listen does: localhost is
// 127.0.0.1, where most peers try.
func TestServePrefersIPv4(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.f.Host("far").AddDevice("mem2", "fd00::7")
		w.far.resolve = addresses("[fd00::7]:7471", there+":7471")
		p := w.farProbe()
		p.send(w.far.CreateID(p.pid, IDConfig{}), &Serve{Addr: "there:7471"})
		if l, _ := next[*Listening](p); l.Local != MustAddr(there+":7471") {
			w.Errorf("listening on %v", l.Local)
		}
	})
}

func TestServeEverywhere(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		server.send(w.far.CreateID(server.pid, IDConfig{}), &Serve{Addr: ":7471"})
		next[*Listening](server)
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		next[*ConnectRequest](server)
	})
}

func TestNamesThatDoNotResolve(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		w.rt.resolve = func(ctx context.Context, _, _ string, _ *cmid.AddrInfo) ([]cmid.AddrInfo, error) {
			<-ctx.Done() // the name server does not answer
			return nil, &cmid.GAIError{Code: cmid.EAIAgain, Err: ctx.Err()}
		}
		p := w.probe()
		for _, cmd := range []Command{&Dial{Addr: "nowhere:1"}, &Serve{Addr: "nowhere:1"}, &cmid.GetAddrInfo{Node: "nowhere"}} {
			id := w.rt.CreateID(p.pid, IDConfig{})
			p.send(id, cmd)
			f, _ := next[*AddrInfoError](p)
			if f.Failed() != cmd {
				w.Errorf("what failed is %T, want %T", f.Failed(), cmd)
			}
			p.send(id, &DestroyID{})
			next[*Closed](p)
			settle()
			for len(p.got) > 0 {
				<-p.got
			}
		}
		// A look-up under way does not outlive the identifier's runtime, and its outcome is
		// dropped.
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, &Dial{Addr: "nowhere:1"})
		settle()
		p.send(id, &DestroyID{})
		f, _ := next[*CommandFailed](p)
		is(w, f, unix.ENOENT)
		next[*Closed](p)
		if err := w.rt.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
		p.quiet()
	})
}

func TestBadAddresses(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		for _, addr := range []string{"", "here", "here:", ":", "a:b:c"} {
			for _, cmd := range []Command{&Dial{Addr: addr}, &Serve{Addr: addr}} {
				p.send(id, cmd)
				f, _ := next[*CommandFailed](p)
				is(w, f, unix.EINVAL)
			}
		}
		if s, ok := w.state(id); !ok || s != states.Idle {
			w.Errorf("the identifier is %v, %v", s, ok)
		}
	})
}

// A mailbox that is full refuses sends, and nothing else.
func TestMailboxIsBounded(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		client := newProbe(w, w.sys, w.rt.OnLoop(), func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				for range 20 { // the identifier's turn comes when this one is over
					ctx.Request(p.c, NewSend([]byte("x")))
				}
				ctx.Request(p.c, &Close{})
			}
		})
		p.client.send(p.c, &Handover{To: client.pid})
		next[*Done](p.client)
		w.sys.Root.Send(client.pid, "go")
		next[string](client)
		full, done := 0, false
		for !done {
			switch m := client.any().msg.(type) {
			case *SendFailed:
				if errors.Is(m, ErrQueueFull) {
					full += m.Sends
				}
			case *Closed:
				done = true
				if m.Delivered != 10 || m.Unsent != 10 {
					w.Errorf("%d delivered, %d unsent of 20", m.Delivered, m.Unsent)
				}
			}
		}
		if full != 10 {
			w.Errorf("%d sends met a full mailbox, want 10", full)
		}
	}, Config{Limits: Limits{Mailbox: 10}})
}

// Dial tries only addresses of the source's family: the error of the last one (EINVAL) would
// otherwise hide the reason, and end a reconnecting actor for good.
func TestDialFromAnAddressOfOneFamily(t *testing.T) {
	onFlavors(t, func(w *world) {
		const other = "[2001:db8::1]:7471"
		client := w.probe()
		dial := func(list ...string) {
			w.rt.resolve = addresses(list...)
			client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: "there:7471", Src: MustAddr(here + ":0")})
		}
		dial(there+":7001", other)
		f, _ := next[Failure](client)
		is(w, f, unix.ECONNREFUSED)
		next[*Closed](client)
		dial(other)
		f, _ = next[Failure](client)
		is(w, f, unix.EINVAL)
		next[*Closed](client)
	})
}

// If one address of a name has no listener, and another one no route, as on a host without IPv6,
// then the error reports the missing listener: whichever of them is the last.
func TestDialSaysHowFarItGot(t *testing.T) {
	onFlavors(t, func(w *world) {
		const nowhere = "[2001:db8::1]:7471"
		client := w.probe()
		for _, list := range [][]string{{there + ":7001", nowhere}, {nowhere, there + ":7001"}, {nowhere, there + ":7001", nowhere}} {
			w.rt.resolve = addresses(list...)
			client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: "there:7471"})
			f, _ := next[Failure](client)
			is(w, f, unix.ECONNREFUSED)
			if _, ok := f.Failed().(*Dial); !ok {
				w.Errorf("it answers %T", f.Failed())
			}
			next[*Closed](client)
		}
	})
}
