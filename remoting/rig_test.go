package remoting_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
)

// soon is how long a test waits for an expected event. It is much longer than that takes.
const soon = time.Minute

// bed is what nodes are on.
type bed struct {
	host   string
	device func() cmid.Driver
}

// here is the embedded device on the loopback interface, or in a test of the kernel's devices one
// of those.
var here = bed{"127.0.0.1", func() cmid.Driver { return iwarp.New() }}

// node is an actor system with a separate runtime, as in a separate process.
type node struct {
	t testing.TB
	*remoting.Node
	sys    *actor.ActorSystem
	rt     *rdma.Runtime
	events *events
}

// insecure permits addresses beyond loopback: in the virtual machines it is a device's.
var insecure = &rdma.Security{Mode: rdma.Insecure}

// everything is exposed.
var everything = remoting.Expose{Reach: []string{"*"}, Watch: []string{"*"}, Stop: []string{"*"}, Spawn: []string{"*"}}

func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger() }))
}

// instead is the logger of nodes that a test starts; nil: none in particular.
var instead *slog.Logger

func logger() *slog.Logger {
	if instead != nil {
		return instead
	}
	if os.Getenv("REMOTING_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// start starts a node on a free port. It ends with the test.
func start(t testing.TB, cfg remoting.Config) *node {
	t.Helper()
	n := open(t, cfg, 1)
	t.Cleanup(n.end)
	return n
}

func open(t testing.TB, cfg remoting.Config, loops int) *node {
	t.Helper()
	n := &node{t: t, sys: newSystem()}
	n.events = collect(n.sys)
	var err error
	if n.rt, err = rdma.Open(n.sys, rdma.Config{
		Device: here.device(), Security: insecure, Loops: make([]eventloop.Config, loops), Logger: logger(),
	}); err != nil {
		t.Fatal(err)
	}
	if cfg.Listen == "" {
		cfg.Listen = here.host + ":0"
	}
	if n.Node, err = remoting.Start(n.rt, cfg); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) end() {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := n.Shutdown(ctx); err != nil {
		n.t.Error(err)
	}
	n.close()
}

func (n *node) close() {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := n.rt.Shutdown(ctx); err != nil {
		n.t.Error(err)
	}
	n.sys.Shutdown()
}

// pid returns the PID of an actor of this node as other nodes see it.
func (n *node) pid(id string) *actor.PID { return actor.NewPID(n.Name(), id) }

func (n *node) spawn(name string, receive actor.ReceiveFunc, options ...actor.PropsOption) *actor.PID {
	n.t.Helper()
	pid, err := n.sys.Root.SpawnNamed(actor.PropsFromFunc(receive, options...), name)
	if err != nil {
		n.t.Fatal(err)
	}
	return pid
}

// kinds returns the kinds of mailboxes that an actor may have.
func (n *node) kinds() map[string][]actor.PropsOption {
	return map[string][]actor.PropsOption{"loop": {n.rt.OnLoop()}, "goroutines": {n.rt.OffLoop()}, "default": nil}
}

// ask sends a request and returns its answer.
func (n *node) ask(to *actor.PID, msg any) (any, error) {
	return remoting.Result(n.sys.Root.RequestFuture(to, msg, soon))
}

func text(s string) *wrapperspb.StringValue { return wrapperspb.String(s) }

// echo answers each message with itself.
func echo(ctx actor.Context) {
	if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
		ctx.Respond(m)
	}
}

// held spawns an actor that answers its messages as soon as answer is called.
func (n *node) held(name string) (answer func()) {
	n.t.Helper()
	hold := make(chan struct{})
	answer = sync.OnceFunc(func() { close(hold) })
	n.t.Cleanup(answer)
	n.spawn(name, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			<-hold
		}
		echo(ctx)
	})
	return answer
}

// inbox queues the messages that an actor has received.
type inbox chan any

func (n *node) probe(name string, options ...actor.PropsOption) (*actor.PID, inbox) {
	in := make(inbox, 1<<18)
	pid := n.spawn(name, func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting:
		default:
			in <- m
		}
	}, options...)
	return pid, in
}

// next returns the next message, which has to be an M.
func next[M any](t testing.TB, in inbox) M {
	t.Helper()
	select {
	case m := <-in:
		got, ok := m.(M)
		if !ok {
			t.Fatalf("%T came: %v", m, m)
		}
		return got
	case <-time.After(soon):
		var none M
		t.Fatalf("no %T came", none)
		return none
	}
}

func silent(t testing.TB, in inbox, d time.Duration) {
	t.Helper()
	select {
	case m := <-in:
		t.Fatalf("%T came: %v", m, m)
	case <-time.After(d):
	}
}

// events collects the events of a system.
type events struct {
	mu   sync.Mutex
	list []any
	news chan struct{}
	off  bool // nothing more is collected
}

func (e *events) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.off = true
}

func collect(sys *actor.ActorSystem) *events {
	e := &events{news: make(chan struct{})}
	sys.EventStream.Subscribe(func(ev any) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.off {
			return
		}
		e.list = append(e.list, ev)
		close(e.news)
		e.news = make(chan struct{})
	})
	return e
}

// await waits for an event of that type for which is is true, and returns it.
func await[E any](t testing.TB, n *node, is func(E) bool) E {
	t.Helper()
	over := time.After(soon)
	at := 0
	for {
		n.events.mu.Lock()
		list, news := n.events.list, n.events.news
		n.events.mu.Unlock()
		for ; at < len(list); at++ {
			if e, ok := list[at].(E); ok && is(e) {
				return e
			}
		}
		select {
		case <-news:
		case <-over:
			var none E
			t.Fatalf("%T was not published", none)
		}
	}
}

func anyEvent[E any](E) bool { return true }

// info returns the PeerInfo of another node.
func (n *node) info(of *node) remoting.PeerInfo {
	for _, i := range n.Peers() {
		if i.Peer.Name == of.Name() {
			return i
		}
	}
	return remoting.PeerInfo{}
}

// eventually waits until a condition is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for over := time.Now().Add(soon); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(over) {
			t.Fatal(what)
		}
	}
}

func timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
