package beside

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
)

const (
	// soon bounds a wait for an expected event. It is much longer than that takes.
	soon = time.Minute
	// briefly is how long a program waits for an event that one of the two never produces.
	briefly = 4 * time.Second
	// still is how long a count does not change before a program takes it for final.
	still = 10 * time.Second
)

// node is an actor system whose actors can be reached from other nodes.
type node struct {
	t    *testing.T
	sys  *actor.ActorSystem
	name string // the address in its PIDs
	way  *way   // nil: others dial the node itself
	// shutdown ends the node politely, and returns its error.
	shutdown func() error
	expose   func(name string) // has others reach an actor
}

// options configure a node.
type options struct {
	patience time.Duration // remoting's; Proto.Actor's remote has none
	cuttable bool          // others connect by a way that the program can cut
	stock    bool          // Proto.Actor's remote takes no larger batches than it does by default
	name     string        // "": where it listens
	listen   string        // "": a free address
	log      *slog.Logger  // nil: discarded
}

// transport is one of the two. open makes n.sys a node of n.name that listens at listen.
type transport struct {
	name string
	open func(n *node, listen string, o options) (end func())
}

// transports returns the two. Proto.Actor's remote has data races.
func transports() []transport {
	ours := transport{"remoting", openRemoting}
	if raceDetector {
		return []transport{ours}
	}
	return []transport{{"protoactor", openRemote}, ours}
}

// start starts a node. It ends with the test.
func (r transport) start(t *testing.T, o options) *node {
	t.Helper()
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	n := &node{t: t, sys: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return o.log }))}
	listen := o.listen
	if listen == "" {
		listen = proctest.FreeAddrs(t, 1)[0]
	}
	n.name = cmp.Or(o.name, listen)
	if o.cuttable {
		n.way = newWay(t, listen)
		n.name = n.way.addr()
	}
	end := r.open(n, listen, o)
	t.Cleanup(func() {
		end()
		n.sys.Shutdown()
	})
	return n
}

// openRemote opens a node of Proto.Actor's remote.
func openRemote(n *node, listen string, o options) (end func()) {
	host, port := split(n.t, listen)
	cfg := []remote.ConfigOption{remote.WithAdvertisedHost(n.name)}
	if !o.stock {
		cfg = append(cfg, remote.WithServerOptions(grpc.MaxRecvMsgSize(64<<20)))
	}
	r := remote.NewRemote(n.sys, remote.Configure(host, port, cfg...))
	r.Start()
	ended := false
	n.expose = func(string) {}
	n.shutdown = func() error {
		ended = true
		r.Shutdown(true)
		return nil
	}
	return func() {
		if !ended { // in order it takes ten seconds, or panics if the peer does the same
			r.Shutdown(false)
		}
	}
}

// openRemoting opens a node of package remoting, which waits for room as Proto.Actor's remote does.
func openRemoting(n *node, listen string, o options) (end func()) {
	rt, err := rdma.Open(n.sys, rdma.Config{Device: iwarp.New(), Logger: o.log})
	if err != nil {
		n.t.Fatal(err)
	}
	r, err := remoting.Start(rt, remoting.Config{Name: n.name, Listen: listen, Patience: o.patience, Overflow: remoting.Block})
	if err != nil {
		n.t.Fatal(errors.Join(err, rt.Shutdown(context.Background())))
	}
	bounded := func(do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		return do(ctx)
	}
	n.expose = func(name string) { r.Expose(remoting.Expose{Reach: []string{name}, Watch: []string{name}}) }
	n.shutdown = func() error { return bounded(r.Shutdown) }
	return func() {
		_ = n.shutdown() // unknown fates are for the senders of requests
		if err := bounded(rt.Shutdown); err != nil {
			n.t.Error(err)
		}
	}
}

// pid returns the PID of an actor of this node as other nodes see it.
func (n *node) pid(id string) *actor.PID { return actor.NewPID(n.name, id) }

// spawn spawns an actor that others may send to.
func (n *node) spawn(name string, receive actor.ReceiveFunc) *actor.PID {
	n.t.Helper()
	pid, err := n.sys.Root.SpawnNamed(actor.PropsFromFunc(receive), name)
	if err != nil {
		n.t.Fatal(err)
	}
	n.expose(name)
	return pid
}

// ask sends a request and returns the text of its answer.
func (n *node) ask(to *actor.PID, text string, within time.Duration) (string, error) {
	return textOf(n.sys.Root.RequestFuture(to, wrapperspb.String(text), within))
}

// textOf waits for an answer.
func textOf(f actor.Future) (string, error) {
	res, err := remoting.Result(f)
	if err != nil {
		return "", err
	}
	if m, ok := res.(*wrapperspb.StringValue); ok {
		return m.Value, nil
	}
	if no, ok := res.(*actor.DeadLetterResponse); ok {
		return "", errors.Join(actor.ErrDeadLetter, errors.New(no.Target.GetId()))
	}
	return "", errors.New("no text came")
}

// echo answers each message with itself.
func echo(ctx actor.Context) {
	if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
		ctx.Respond(m)
	}
}

// settles waits until a count is n, or stops changing, and returns it.
func settles(n int, count func() int) int {
	last, since := -1, time.Now()
	for {
		got := count()
		if got != last {
			last, since = got, time.Now()
		}
		if got == n || time.Since(since) > still {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
}
