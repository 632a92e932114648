package actor

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
)

// hoarder is a server's owner that keeps what greedy peers send, and answers the good ones.
type hoarder struct {
	mu     sync.Mutex
	kept   []*Received
	seen   map[Handle]uint32 // of each peer's messages
	all    int
	bytes  int
	ends   []string
	amends bool   // it no longer keeps anything
	dying  bool   // ends are expected
	more   func() // something has come
}

const (
	greedy = 'g'
	good   = 'p'
)

func (h *hoarder) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *ConnectRequest:
		ctx.Respond(&Accept{})
	case *Disconnected:
		if m.Err == nil {
			return // the good peer is finished
		}
		h.end(fmt.Sprintf("id %d was disconnected: %v", m.ID, m.Err))
	case *Received:
		if m.Data[0] == good {
			ctx.Respond(NewSend(m.Data))
			return
		}
		h.take(m)
	}
}

func (h *hoarder) end(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dying {
		h.ends = append(h.ends, why)
	}
	h.more()
}

// wrong returns what went wrong, each error once: when a connection ends, its messages fail alike.
func (h *hoarder) wrong() []string {
	all := slices.Compact(slices.Clone(h.ends))
	return all[:min(len(all), 10)]
}

func (h *hoarder) take(m *Received) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := binary.BigEndian.Uint32(m.Data[1:]); n != h.seen[m.ID] {
		h.ends = append(h.ends, fmt.Sprintf("id %d: message %d came in the place of %d", m.ID, n, h.seen[m.ID]))
	}
	h.seen[m.ID]++
	h.all++
	if !h.amends {
		h.bytes += len(m.Data)
		h.kept = append(h.kept, m.Retain())
	}
	h.more()
}

// release releases everything, from a separate goroutine.
func (h *hoarder) release() {
	h.mu.Lock()
	kept := h.kept
	h.kept, h.amends = nil, true
	h.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, m := range kept {
			m.Release()
		}
	}()
	<-done
}

// greed is a number of peers whose messages their server's owner keeps, and one good peer that
// only wants its answers.
type greed struct {
	tb             testing.TB
	server, client *Runtime
	where          actor.PropsOption // the hoarder runs
	listen         string
	peers, each    int // greedy peers, and messages of each
	size           int // of a message
	cfg            IDConfig
	raw            bool // greedy peers dial so
	h              *hoarder
	came           chan struct{}
	ids            []*actor.PID
	owner          *probe
}

func (g *greed) run() {
	g.tb.Helper()
	g.begin()
	g.serve(100)
	g.h.release()
	g.serve(10)
	g.await("everything", func() bool { return g.h.all == g.peers*g.each })
	g.finish()
}

// begin connects the greedy peers, which send all they have.
func (g *greed) begin() {
	g.tb.Helper()
	sys := g.server.sys
	g.came = make(chan struct{}, 1)
	g.h = &hoarder{seen: make(map[Handle]uint32), more: func() {
		select {
		case g.came <- struct{}{}:
		default:
		}
	}}
	g.tb.Cleanup(g.h.release) // Shutdown waits for it
	props := actor.PropsFromProducer(func() actor.Actor { return g.h })
	props.Configure(g.where)
	lis := g.server.CreateID(sys.Root.Spawn(props), g.cfg)
	l, err := Ask[*Listening](g.tb.Context(), g.server, lis, &Serve{Addr: g.listen})
	if err != nil {
		g.tb.Fatal(err)
	}
	g.listen = l.Local.String()
	g.owner = newProbe(g.tb, sys, g.client.OnLoop(), nil)
	up := make(chan struct{}, g.peers)
	flood := actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *Established:
			up <- struct{}{}
			for i := range g.each {
				s := NewSendBuffer(g.size)
				s.Bytes()[0] = greedy
				binary.BigEndian.PutUint32(s.Bytes()[1:], uint32(i))
				ctx.Request(ctx.Sender(), s)
			}
		case *SendFailed:
			g.h.end(m.Error())
		case *Disconnected:
			g.h.end(fmt.Sprintf("a greedy peer was disconnected: %v", m.Err))
		case Failure:
			g.h.end(m.Error())
		}
	}, g.client.OnLoop())
	floods := sys.Root.Spawn(flood)
	cfg := g.cfg
	cfg.Raw = g.raw
	for range g.peers {
		id := g.client.CreateID(floods, cfg)
		g.ids = append(g.ids, id)
		sys.Root.Send(id, &Dial{Addr: g.listen})
	}
	for range g.peers {
		select {
		case <-up:
		case <-time.After(patience):
			g.h.mu.Lock()
			defer g.h.mu.Unlock()
			g.tb.Fatalf("not all are connected: %v", g.h.wrong())
		}
	}
}

// serve connects a good peer, which asks rounds times.
func (g *greed) serve(rounds int) {
	g.tb.Helper()
	id := g.client.CreateID(g.owner.pid, g.cfg)
	g.owner.send(id, &Dial{Addr: g.listen})
	next[*Established](g.owner)
	msg := bytes.Repeat([]byte{good}, g.size)
	for i := range rounds {
		g.owner.send(id, NewSend(msg))
		select {
		case a := <-g.owner.got:
			if _, ok := a.msg.(*Received); !ok || a.data != string(msg) {
				g.tb.Fatalf("round %d of the good peer: %v", i, a)
			}
		case <-time.After(patience):
			g.h.mu.Lock()
			defer g.h.mu.Unlock()
			g.tb.Fatalf("the good peer is not answered: round %d; %v", i, g.h.wrong())
		}
	}
	g.owner.send(id, &Close{})
	end := until[*Closed](g.owner)
	if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != uint64(rounds) {
		g.tb.Errorf("the good peer's end: %v", end)
	}
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if len(g.h.ends) > 0 {
		g.tb.Fatalf("%d of %d messages have come, and these went wrong: %v", g.h.all, g.peers*g.each, g.h.wrong())
	}
}

// await waits for cond, which is called under h.mu whenever something has come.
func (g *greed) await(what string, cond func() bool) {
	g.tb.Helper()
	late := time.After(patience)
	for {
		g.h.mu.Lock()
		ok, all, ends := cond(), g.h.all, len(g.h.ends)
		g.h.mu.Unlock()
		if ok || ends > 0 {
			return
		}
		select {
		case <-g.came:
		case <-late:
			g.tb.Fatalf("waited in vain for %s: %d of %d messages have come", what, all, g.peers*g.each)
		}
	}
}

func (g *greed) finish() {
	g.tb.Helper()
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if len(g.h.ends) > 0 {
		g.tb.Errorf("%d went wrong: %v", len(g.h.ends), g.h.wrong())
	}
	g.h.more = func() {}
}

// kill destroys half of the greedy peers' identifiers.
func (g *greed) kill() {
	g.h.mu.Lock()
	g.h.dying = true
	g.h.mu.Unlock()
	for _, id := range g.ids[:g.peers/2] {
		g.client.sys.Root.Send(id, &DestroyID{})
	}
}

// hoards are what greedy peers do, each with a memory that it would fill.
var hoards = map[string]struct {
	memory            int
	peers, each, size int
	cfg               IDConfig
	raw               bool
}{
	"their whole windows":   {memory: 4 << 20, peers: 4, each: 40, size: 64 << 10},
	"small messages":        {memory: 8 << 20, peers: 5, each: 100, size: 513},
	"no window":             {memory: 1 << 20, peers: 2, each: 1000, size: 5, raw: true},
	"no window, large ones": {memory: 1 << 20, peers: 3, each: 100, size: 16 << 10, raw: true},
	"many":                  {memory: 1 << 20, peers: 60, each: 40, size: 1 << 10, cfg: IDConfig{MaxMessage: 2 << 10, Credits: 32}},
}

// Peers whose messages are not released slow down only themselves.
func TestGreedyPeers(t *testing.T) {
	for name, tt := range hoards {
		limits := Config{Limits: Limits{ReceiveMemory: tt.memory, SendQueue: tt.each}}
		for where, prop := range map[string]func(rt *Runtime) actor.PropsOption{
			"on the loop": (*Runtime).OnLoop, "off the loop": (*Runtime).OffLoop,
		} {
			t.Run(name+"/"+where+"/embedded", func(t *testing.T) {
				sys := testSystem(t)
				g := greed{
					tb: t, server: openIWARP(t, sys, limits), client: openIWARP(t, sys, Config{Limits: Limits{SendQueue: tt.each}}),
					listen: "127.0.0.1:0", peers: tt.peers, each: tt.each, size: tt.size, cfg: tt.cfg, raw: tt.raw,
				}
				g.where = prop(g.server)
				g.run()
			})
			for flavor, f := range flavors {
				t.Run(name+"/"+where+"/"+flavor, func(t *testing.T) {
					inWorld(t, f, func(w *world) {
						g := greed{
							tb: w, server: w.far, client: w.rt, where: prop(w.far), listen: there + ":7471",
							peers: tt.peers, each: tt.each, size: tt.size, cfg: tt.cfg, raw: tt.raw,
						}
						g.run()
					}, limits)
				})
			}
		}
	}
}

// However long messages wait for memory, neither side takes the other for lost.
func TestWaitingIsNoSilence(t *testing.T) {
	onFlavors(t, func(w *world) {
		g := greed{tb: w, server: w.far, client: w.rt, where: w.far.OffLoop(), listen: there + ":7471", peers: 3, each: 40, size: 64 << 10}
		g.begin()
		time.Sleep(time.Hour)
		g.serve(3)
		g.h.release()
		g.await("everything", func() bool { return g.h.all == g.peers*g.each })
		g.finish()
	}, Config{Limits: Limits{ReceiveMemory: 2 << 20, SendQueue: 64}})
}

// A peer's TCP window stays closed while its messages wait. TCP does not give it up, however long
// that takes: there are probes for that.
func TestWaitingOutlastsTCP(t *testing.T) {
	const short = 500 * time.Millisecond
	sys := testSystem(t)
	cfg := Config{
		Device: iwarp.New(iwarp.Config{UserTimeout: short}),
		Limits: Limits{ReceiveMemory: 2 << 20, SendQueue: 512},
	}
	g := greed{
		tb: t, server: openRuntime(t, sys, cfg), client: openRuntime(t, sys, cfg), listen: "127.0.0.1:0",
		// more than sockets hold
		peers: 2, each: 400, size: 64 << 10, cfg: IDConfig{MaxMessage: 64 << 10, Credits: 400},
	}
	g.where = g.server.OffLoop()
	g.begin()
	time.Sleep(6 * short)
	g.h.release()
	g.await("everything", func() bool { return g.h.all == g.peers*g.each })
	g.finish()
}

// A thousand greedy peers do not slow down a good one.
func TestThousandGreedyPeers(t *testing.T) {
	const each = 40
	peers := 1000
	if testing.Short() {
		peers = 250
	}
	limits := Config{Limits: Limits{ReceiveMemory: 32 << 20, SendQueue: each}}
	messages := IDConfig{MaxMessage: 4 << 10, Credits: 32}
	t.Run("embedded", func(t *testing.T) {
		sys := testSystem(t)
		g := greed{
			tb: t, server: openIWARP(t, sys, Config{Limits: limits.Limits, Loops: make([]eventloop.Config, 2)}), client: openIWARP(t, sys, limits), listen: "127.0.0.1:0",
			peers: peers, each: each, size: 4 << 10, cfg: messages,
		}
		if overwrite.On { // slow: a thousand set-ups would meet their deadlines on a busy machine
			g.peers = 250
		}
		g.where = g.server.OffLoop()
		g.run()
	})
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) {
			inWorld(t, f, func(w *world) {
				g := greed{
					tb: w, server: w.far, client: w.rt, where: w.far.OnLoop(), listen: there + ":7471",
					peers: peers, each: each, size: 4 << 10, cfg: messages,
				}
				g.run()
			}, limits)
		})
	}
}

// Greedy peers that die while their messages wait, and a runtime that is shut down then, leave
// nothing behind. The rig checks that.
func TestGreedyPeersDie(t *testing.T) {
	for name, f := range flavors {
		for _, raw := range []bool{false, true} {
			t.Run(fmt.Sprint(name, raw), func(t *testing.T) {
				inWorld(t, f, func(w *world) {
					g := greed{
						tb: w, server: w.far, client: w.rt, where: w.far.OffLoop(), listen: there + ":7471", peers: 8, each: 100,
						size: 16 << 10, raw: raw,
					}
					g.begin()
					settle()
					g.kill()
					g.serve(5)
					settle()
					go g.h.release()
					if err := w.far.Shutdown(context.Background()); err != nil {
						w.Error(err)
					}
				}, Config{Limits: Limits{ReceiveMemory: 8 << 20, SendQueue: 128}})
			})
		}
	}
	t.Run("embedded", func(t *testing.T) {
		sys := testSystem(t)
		limits := Config{Limits: Limits{ReceiveMemory: 8 << 20, SendQueue: 128}}
		g := greed{
			tb: t, server: openIWARP(t, sys, limits), client: openIWARP(t, sys, limits), listen: "127.0.0.1:0", peers: 8, each: 100,
			size: 16 << 10,
		}
		g.where = g.server.OffLoop()
		g.begin()
		g.kill()
		go g.h.release()
		if err := g.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
