package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
)

// site is a node on the embedded device, in real time.
type site struct {
	rt    *rdma.Runtime
	id    uint64
	peers *reconnect.Peers
	addr  string

	mu   sync.Mutex
	ends map[uint64]*end

	t      *testing.T
	ending bool // so its actors may end unasked
}

// end is a node's side of a connection. Its owner sends a hello in each generation.
type end struct {
	owner, link *actor.PID
	met         chan string // the other side's hello, in the present generation
	over        chan struct{}
}

func (s *site) end(peer uint64, addr string) *end {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.ends[peer]; e != nil {
		if addr != "" {
			s.rt.System().Root.Send(e.link, &reconnect.Address{Addr: addr})
		}
		return e
	}
	e := &end{met: make(chan string, 64), over: make(chan struct{})}
	root := s.rt.System().Root
	e.owner = root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *reconnect.Up:
			ctx.Respond(rdma.NewSend(fmt.Append(nil, s.id, " in generation ", m.Generation)))
		case *rdma.Received:
			select {
			case e.met <- string(m.Data):
			default:
			}
		case *reconnect.Closed:
			if m.Err != nil && !s.ending && !errors.Is(m.Err, rdma.ErrShutdown) {
				s.t.Errorf("node %d: %v", s.id, m.Err)
			}
			close(e.over)
		}
	}, s.rt.OnLoop()))
	e.link = reconnect.Spawn(s.rt, e.owner, reconnect.Config{
		Dial: rdma.Dial{Addr: addr}, Peers: s.peers, Peer: peer,
		Backoff: reconnect.Backoff{First: time.Millisecond, Most: 50 * time.Millisecond},
		Limiter: reconnect.NewLimiter(1000, 100_000),
	})
	s.ends[peer] = e
	return e
}

// leave ends the node's side of a connection.
func (s *site) leave(peer uint64) {
	s.mu.Lock()
	e := s.ends[peer]
	delete(s.ends, peer)
	s.mu.Unlock()
	if e != nil {
		s.rt.System().Root.Send(e.link, &rdma.DestroyID{})
		<-e.over // from now on the peer may have another one
		s.rt.System().Root.Stop(e.owner)
	}
}

func newSite(t *testing.T, rt *rdma.Runtime, id uint64) *site {
	t.Helper()
	s := &site{t: t, rt: rt, id: id, ends: make(map[uint64]*end)}
	s.peers = reconnect.NewPeers(reconnect.PeersConfig{Node: id, Incarnation: 1, Unknown: func(o reconnect.Stranger) *actor.PID {
		return s.end(o.Node, "").link
	}})
	l, err := rdma.Ask[*rdma.Listening](t.Context(), rt, rt.CreateID(nil, s.peers.Listener(rdma.IDConfig{})), &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Local.String()
	return s
}

func realRuntime(t *testing.T, sys *actor.ActorSystem, loops int, security ...*rdma.Security) *rdma.Runtime {
	t.Helper()
	rt, err := rdma.Open(sys, rdma.Config{Security: append(security, nil)[0], Device: iwarp.New(), Loops: make([]eventloop.Config, loops), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// sharedKey returns a Security for both sides.
func sharedKey(t *testing.T) *rdma.Security {
	t.Helper()
	c := rdma.Credential{Identity: "nodes", Key: [32]byte{1}}
	k := new(rdma.Keyring)
	if err := errors.Join(k.Use(c), k.Accept(c)); err != nil {
		t.Fatal(err)
	}
	return &rdma.Security{Mode: rdma.PSK, Keys: k}
}

// Pairs of nodes on several loops, with the embedded device: both dial, or one does and the other
// has never heard of it, again and again. They always come to one connection that works, and
// nothing is left.
func TestCrossingOnLoops(t *testing.T) {
	for _, tt := range []struct {
		loops    int
		security *rdma.Security
	}{{2, nil}, {3, nil}, {4, nil}, {2, sharedKey(t)}, {3, sharedKey(t)}} {
		loops := tt.loops
		t.Run(fmt.Sprintf("%d loops, secured %v", loops, tt.security != nil), func(t *testing.T) {
			sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
			defer sys.Shutdown()
			x, y := realRuntime(t, sys, loops, tt.security), realRuntime(t, sys, loops, tt.security)
			var met atomic.Int64
			var pairs sync.WaitGroup
			for n := range uint64(4) {
				// either has the lower id
				a, b := newSite(t, x, 10+n), newSite(t, y, 20-10*(n%2)*2+n)
				pairs.Go(func() {
					r := rand.New(rand.NewPCG(uint64(loops), n))
					for round := range 80 {
						if !meet(a, b, r) {
							t.Errorf("round %d: nodes %d and %d have not met", round, a.id, b.id)
							return
						}
						met.Add(1)
					}
				})
			}
			pairs.Wait()
			for name, rt := range map[string]*rdma.Runtime{"x": x, "y": y} {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				if err := rt.Shutdown(ctx); err != nil {
					t.Errorf("shutdown of %s: %v", name, err)
				}
				cancel()
			}
			t.Logf("%d meetings", met.Load())
		})
	}
}

// meet connects two nodes, waits until both have heard each other, and ends it.
func meet(a, b *site, r *rand.Rand) bool {
	both := r.IntN(3)
	pause := time.Duration(r.IntN(300)) * time.Microsecond
	var ends sync.WaitGroup
	ends.Go(func() {
		if both != 1 {
			a.end(b.id, b.addr)
		}
	})
	ends.Go(func() {
		time.Sleep(pause)
		if both != 2 {
			b.end(a.id, a.addr)
		}
	})
	ends.Wait()
	for _, s := range [...]struct{ of, to *site }{{a, b}, {b, a}} {
		deadline := time.Now().Add(20 * time.Second)
		for {
			s.of.mu.Lock()
			e := s.of.ends[s.to.id]
			s.of.mu.Unlock()
			if e != nil {
				select {
				case text := <-e.met:
					if !strings.HasPrefix(text, fmt.Sprint(s.to.id, " ")) {
						return false
					}
				case <-time.After(time.Until(deadline)):
					return false
				}
				break
			}
			if time.Now().After(deadline) {
				return false
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
	if r.IntN(2) == 0 {
		a, b = b, a
	}
	a.leave(b.id)
	b.leave(a.id)
	return true
}

// Hundreds of invented nodes dial from one address, and come again immediately. Their resources are
// bounded, and a node from another address finds its place.
func TestFloodOfInventedNodes(t *testing.T) {
	const most, flood = 32, 400
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	defer sys.Shutdown()
	x, y := realRuntime(t, sys, 3), realRuntime(t, sys, 2)
	var asked, refused atomic.Int64
	a := &site{t: t, rt: x, id: 1, ends: make(map[uint64]*end), ending: true}
	a.peers = reconnect.NewPeers(reconnect.PeersConfig{Node: 1, Incarnation: 1, Strangers: most, Unknown: func(s reconnect.Stranger) *actor.PID {
		asked.Add(1)
		return a.end(s.Node, "").link
	}})
	l, err := rdma.Ask[*rdma.Listening](t.Context(), x, x.CreateID(nil, a.peers.Listener(rdma.IDConfig{})), &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	dial := rdma.Dial{Addr: fmt.Sprint("127.0.0.1:", l.Local.Port())}
	owner := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if d, ok := ctx.Message().(*reconnect.Down); ok && errors.Is(d.Err, reconnect.ErrTooManyNodes) {
			refused.Add(1)
		}
	}, y.OnLoop()))
	for n := range uint64(flood) {
		reconnect.Spawn(y, owner, reconnect.Config{
			Dial: dial, Peers: reconnect.NewPeers(reconnect.PeersConfig{Node: 1000 + n}), Peer: 1,
			Backoff: reconnect.Backoff{First: time.Millisecond, Most: 10 * time.Millisecond}, Limiter: reconnect.NewLimiter(1000, 1e6),
		})
	}
	for deadline := time.Now().Add(30 * time.Second); refused.Load() < flood; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d refusals", refused.Load())
		}
	}
	dial.Src = rdma.MustAddr("127.0.0.2:0")
	up := make(chan struct{})
	good := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*reconnect.Up); ok {
			close(up)
		}
	}, y.OnLoop()))
	reconnect.Spawn(y, good, reconnect.Config{Dial: dial, Peers: reconnect.NewPeers(reconnect.PeersConfig{Node: 2}), Peer: 1})
	select {
	case <-up:
	case <-time.After(30 * time.Second):
		t.Error("a node from elsewhere finds no place")
	}
	if n := asked.Load(); n > most/2+1 { // half is for those from elsewhere
		t.Errorf("%d invented nodes got an actor", n)
	}
	sys.Root.Stop(owner)
	for _, rt := range []*rdma.Runtime{y, x} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// One side shuts down while nodes that it has never heard of dial it, and it dials them. Shutdown
// returns, and the other side, which goes on trying, is shut down after it.
func TestShutdownWhileNodesCome(t *testing.T) {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	defer sys.Shutdown()
	r := rand.New(rand.NewPCG(1, 1))
	for round := range 30 {
		x, y := realRuntime(t, sys, 3), realRuntime(t, sys, 2)
		a := newSite(t, x, 10)
		a.ending = true
		for n := range uint64(6) {
			b := newSite(t, y, 7+n*2) // some are lower
			b.ending = true
			b.end(a.id, a.addr)
			if n%3 == 0 {
				a.end(b.id, b.addr)
			}
		}
		time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
		for name, rt := range map[string]*rdma.Runtime{"x": x, "y": y} {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			if err := rt.Shutdown(ctx); err != nil {
				t.Errorf("round %d: shutdown of %s: %v", round, name, err)
			}
			cancel()
		}
	}
}
