package reconnect_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

const there = "10.0.0.2:7471"

// rig is a client that reconnects to a server which the test plays on another machine.
type rig struct {
	*actortest.World
	t      *testing.T
	far    *rdma.Runtime
	owner  *actortest.Probe
	server *actortest.Probe
	link   *actor.PID
}

// onFlavors runs a test on both kinds of devices.
func onFlavors(t *testing.T, test func(r *rig), cfg ...actortest.Config) {
	t.Helper()
	for name, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
		t.Run(name, func(t *testing.T) {
			c := first(cfg)
			c.InfiniBand = infiniBand
			inRig(t, test, c)
		})
	}
}

// first returns the optional config, or the zero one.
func first[C any](given []C) (c C) {
	if len(given) > 0 {
		c = given[0]
	}
	return c
}

func inRig(t *testing.T, test func(r *rig), cfg ...actortest.Config) {
	t.Helper()
	actortest.Run(t, first(cfg), func(w *actortest.World) {
		test(&rig{World: w, t: w.T(), far: w.Host("mem1", "10.0.0.2"), owner: w.Probe(), server: w.Probe()})
	})
}

// serve listens.
func (r *rig) serve(cfg ...rdma.IDConfig) (listener *actor.PID) {
	r.t.Helper()
	listener = r.far.CreateID(r.server.PID(), first(cfg))
	r.server.Request(listener, &rdma.Serve{Addr: ":7471"})
	actortest.Next[*rdma.Listening](r.server)
	return listener
}

// spawn starts the client.
func (r *rig) spawn(cfg reconnect.Config) *actor.PID {
	if cfg.Dial.Addr == "" {
		cfg.Dial.Addr = there
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.New(rand.NewPCG(1, 2))
	}
	r.link = reconnect.Spawn(r.Runtime(), r.owner.PID(), cfg)
	return r.link
}

// accept accepts the next request, and waits until both sides know.
func (r *rig) accept() (conn *actor.PID, up *reconnect.Up) {
	r.t.Helper()
	actortest.Next[*rdma.ConnectRequest](r.server)
	conn = r.server.Sender()
	r.server.Request(conn, &rdma.Accept{})
	actortest.Next[*rdma.Established](r.server)
	for {
		switch m := actortest.Next[any](r.owner).(type) {
		case *reconnect.Up:
			return conn, m
		case *reconnect.Down:
		default:
			r.t.Fatalf("the owner got %+v, want Up", m)
		}
	}
}

func (r *rig) send(tag uint64, text string) {
	r.owner.Send(r.link, reconnect.NewSend(tag, []byte(text)))
}

// sendTwice sends a message that may be delivered twice.
func (r *rig) sendTwice(tag uint64, text string) {
	s := reconnect.NewSend(tag, []byte(text))
	s.Idempotent = true
	r.owner.Send(r.link, s)
}

// hears checks the server's next messages.
func (r *rig) hears(texts ...string) {
	r.t.Helper()
	for _, want := range texts {
		if m := actortest.Next[*rdma.Received](r.server); string(m.Data) != want {
			r.t.Fatalf("the server got %q, want %q", m.Data, want)
		}
	}
}

// released makes the server release its last message.
func (r *rig) released() {
	r.t.Helper()
	r.server.Send(r.server.PID(), "no more")
	actortest.Next[string](r.server)
}

// untilDown reads the fates that the owner gets up to the next Down.
func (r *rig) untilDown() (fates []reconnect.Fate, d *reconnect.Down) {
	r.t.Helper()
	for {
		switch m := actortest.Next[any](r.owner).(type) {
		case *reconnect.Settled:
			fates = append(fates, m.Fates...)
		case *reconnect.Down:
			return append(fates, m.Fates...), m
		}
	}
}

// ended reads the server's report of a connection's end.
func (r *rig) ended() {
	r.t.Helper()
	for {
		if _, ok := actortest.Next[any](r.server).(*rdma.Closed); ok {
			return
		}
	}
}

// finish closes the client, if it is there, and everything else.
func (r *rig) finish() *reconnect.Closed {
	r.t.Helper()
	r.owner.Send(r.link, &rdma.Close{Timeout: time.Second})
	for {
		if c, ok := actortest.Next[any](r.owner).(*reconnect.Closed); ok {
			return c
		}
	}
}

// fates returns the same fate of several messages.
func fates(o reconnect.Outcome, again bool, tags ...uint64) (all []reconnect.Fate) {
	for _, tag := range tags {
		all = append(all, reconnect.Fate{Tag: tag, Outcome: o, Again: again})
	}
	return all
}

// diary is an owner that records its messages, except for those that its tests do not need.
type diary struct {
	mu       sync.Mutex
	pid      *actor.PID
	settled  []reconnect.Fate
	received []string
	refused  []*reconnect.Refused
	downs    []*reconnect.Down
	up       *reconnect.Up // nil: down
	ups      int
	closed   *reconnect.Closed
	end      chan struct{} // closed at the end; nil: not needed
	broken   []string      // illegal messages
}

func newDiary(w *actortest.World, rt *rdma.Runtime) *diary {
	d := &diary{}
	d.pid = w.System().Root.Spawn(actor.PropsFromFunc(d.receive, rt.OnLoop()))
	w.T().Cleanup(func() { _ = w.System().Root.StopFuture(d.pid).Wait() })
	return d
}

func (d *diary) receive(ctx actor.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed != nil {
		switch ctx.Message().(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
			return
		}
		d.broken = append(d.broken, fmt.Sprintf("%+v after Closed", ctx.Message()))
	}
	switch m := ctx.Message().(type) {
	case *reconnect.Up:
		if d.up != nil {
			d.broken = append(d.broken, "Up twice")
		}
		d.up = m
		d.ups++
	case *reconnect.Settled:
		if d.up == nil || d.up.Generation != m.Generation {
			d.broken = append(d.broken, fmt.Sprintf("%+v while %+v", m, d.up))
		}
		d.settled = append(d.settled, m.Fates...)
	case *rdma.Received:
		if d.up == nil || d.up.Established.ID != m.ID {
			d.broken = append(d.broken, fmt.Sprintf("%v while %+v", m, d.up))
		}
		d.received = append(d.received, string(m.Data))
	case *reconnect.Refused:
		d.refused = append(d.refused, m)
	case *reconnect.Down:
		if m.WasUp != (d.up != nil) || d.up != nil && d.up.Generation != m.Generation {
			d.broken = append(d.broken, fmt.Sprintf("%+v while %+v", m, d.up))
		}
		d.up = nil
		d.downs = append(d.downs, m)
		d.settled = append(d.settled, m.Fates...)
	case *reconnect.Closed:
		d.closed = m
		if d.end != nil {
			close(d.end)
		}
		d.settled = append(d.settled, m.Fates...)
	}
}

// read looks at the diary when nothing is being written.
func (d *diary) read(w *actortest.World, look func()) {
	w.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.broken {
		w.T().Errorf("the owner got %s", b)
	}
	look()
}

// quiet is for tests with so many connections that their log is useless.
var quiet = slog.New(slog.DiscardHandler)
