package remoting

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// frameIn is a frame of a fuzzer's, for a link that is open.
type frameIn struct {
	bytes []byte
	done  chan struct{}
}

// fuzzed is a link without a connection, which still receives frames.
type fuzzed struct {
	l  *link
	up *reconnect.Up
}

func (f *fuzzed) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*frameIn)
	if !ok {
		f.l.Receive(ctx)
		return
	}
	defer close(m.done)
	f.l.up, f.l.greeting, f.l.who, f.l.most = f.up, open, Peer{Name: "fuzz:1"}, 1<<20
	f.l.handleReceived(ctx, &rdma.Received{Data: m.bytes})
	f.l.failOnLoss(ctx, nil)
	f.l.up, f.l.greeting, f.l.out.first, f.l.pausing = nil, absent, nil, true
}

// FuzzLink passes arbitrary frames to an open link: it never panics, and the state of the peer
// stays bounded.
func FuzzLink(f *testing.F) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Logger: quiet})
	if err != nil {
		f.Fatal(err)
	}
	all := []string{"*"}
	n, err := Start(rt, Config{
		Listen: "127.0.0.1:0", Expose: Expose{Reach: all, Watch: all, Stop: all, Spawn: all}, Peers: 16, Patience: 10 * time.Millisecond,
		Resolve: func(context.Context, string) (string, error) { return "", errors.New("no names") },
		Kinds:   map[string]*actor.Props{"kind": actor.PropsFromFunc(func(actor.Context) {})},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := n.Shutdown(ctx); err != nil {
			f.Error(err)
		}
		if err := rt.Shutdown(ctx); err != nil {
			f.Error(err)
		}
		sys.Shutdown()
	})
	sys.EventStream.Subscribe(func(ev any) {
		if e, ok := ev.(*actor.SupervisorEvent); ok {
			f.Errorf("%v has panicked: %v", e.Child, e.Reason)
		}
	})
	pid := spawnFuzzed(f, n)
	for _, r := range seeds() {
		var w frame.Writer
		for i := range r {
			if err := w.Append(&r[i]); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(w.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, ok := sys.ProcessRegistry.GetLocal("target"); !ok {
			_, _ = sys.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "target")
		}
		in := &frameIn{bytes: b, done: make(chan struct{})}
		sys.Root.Send(pid, in)
		<-in.done
		if i := n.Peers(); len(i) > 16 {
			t.Errorf("%d peers", len(i))
		}
	})
}

func spawnFuzzed(f *testing.F, n *Node) *actor.PID {
	p := newPeer(n.host, nodeID("fuzz:1"), 0, "fuzz:1")
	l := newLink(n.roster, p)
	l.conn = actor.NewPID(n.name, "no connection")
	pid, err := n.sys.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor {
		return &fuzzed{l, &reconnect.Up{Established: &rdma.Established{}}}
	}, n.rt.OnLoop()), n.own+"/fuzzed")
	if err != nil {
		f.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p.link = pid
	l.report = n.newReporterLocked(p, pid)
	n.peers[p.id] = p
	l.countUnconnected(true)
	return pid
}

// seeds returns a frame of each kind.
func seeds() [][]frame.Record {
	body, _ := proto.Marshal(wrapperspb.String("hello"))
	s := frame.PID{ID: "sender"}
	user := frame.Record{Kind: frame.KindUser, Target: "target", Sender: s, Type: "google.protobuf.StringValue", Body: body, Header: []frame.Pair{{Key: "k", Value: "v"}}}
	pill, third, answer := user, user, user
	pill.Type, pill.Body = "actor.PoisonPill", nil
	third.Sender.Address, answer.Target = "other:1", "future$1"
	return [][]frame.Record{
		nil,
		{user},
		{user, user, pill},
		{third, answer},
		{{Kind: frame.KindWatch, Target: "target", Sender: s}, {Kind: frame.KindUnwatch, Target: "target", Sender: s}},
		{{Kind: frame.KindTerminated, Target: "target", Sender: s}, {Kind: frame.KindStop, Target: "target"}},
		{{Kind: frame.KindSpawn, Seq: 1, Type: "kind", Target: "name"}, {Kind: frame.KindSpawned, Seq: 1, Target: "name"}},
		{{Kind: frame.KindRefused, Target: "target", Sender: s, Code: frame.RefusedDenied}},
		{{Kind: frame.KindGoodbye, Code: frame.GoodbyeShutdown, Reason: "bye"}},
		{{Kind: frame.KindHello, Hello: &frame.Hello{Name: "fuzz:1", MaxMessage: 1 << 20}}},
	}
}
