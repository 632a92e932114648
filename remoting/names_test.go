package remoting_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// A node needs a name that peers can dial: not port 0, which two nodes would both be called after,
// nor the address that stands for all. A hello has room for names of a certain length.
func TestNamesThatNobodyCanDial(t *testing.T) {
	longest := "far:1" + strings.Repeat("0", frame.MaxName-len("far:1"))
	for what, cfg := range map[string]remoting.Config{
		"port 0": {Name: "127.0.0.1:0"}, "port 0 of a host": {Name: "localhost:0", Listen: "127.0.0.1:0"},
		"all addresses": {Listen: "0.0.0.0:0"}, "all of IPv6": {Listen: "[::]:0"}, "no host": {Listen: ":0"}, "a name of that": {Name: "0.0.0.0:7471", Listen: "127.0.0.1:0"},
		"a long name": {Listen: "127.0.0.1:0", Name: longest + "0"}, "a long member": {Listen: "127.0.0.1:0", Name: "far:1", Member: longest + "0"},
	} {
		sys := newSystem()
		rt, err := rdma.Open(sys, rdma.Config{Device: here.device(), Security: insecure, Logger: logger()})
		if err != nil {
			t.Fatal(err)
		}
		n, err := remoting.Start(rt, cfg)
		if !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v", what, err)
		}
		alone := &node{t: t, Node: n, sys: sys, rt: rt}
		if n != nil {
			alone.end()
		} else {
			alone.close()
		}
	}
	n := start(t, remoting.Config{Listen: "0.0.0.0:0", Name: longest, Member: longest})
	if n.Name() != longest {
		t.Error(n.Name())
	}
}

// An actor system is one node, once. What would get a node's messages must not be there before it.
func TestStartsOnce(t *testing.T) {
	n := start(t, remoting.Config{})
	name := n.Name()
	if again, err := remoting.Start(n.rt, remoting.Config{Listen: here.host + ":0"}); again != nil || !errors.Is(err, remoting.ErrStarted) {
		t.Error(again, err)
	}
	if n.sys.Address() != name {
		t.Errorf("%s has become %s", name, n.sys.Address())
	}
	sys := newSystem() // as remote has it
	sys.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (actor.Process, bool) { return nil, false })
	rt, err := rdma.Open(sys, rdma.Config{Device: here.device(), Security: insecure, Logger: logger()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remoting.Start(rt, remoting.Config{Listen: here.host + ":0"}); !errors.Is(err, remoting.ErrStarted) || !errors.Is(err, unix.EALREADY) {
		t.Error(err)
	}
	(&node{t: t, sys: sys, rt: rt}).close()
}

// A peer that cannot be reached is logged, with the reason: a future has only ErrDeadLetter.
func TestUnreachableIsLogged(t *testing.T) {
	var mu sync.Mutex
	var lines strings.Builder
	sys := newSystem()
	log := slog.New(slog.NewTextHandler(writer(func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		lines.Write(b)
	}), nil))
	rt, err := rdma.Open(sys, rdma.Config{Device: here.device(), Security: insecure, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, sys: sys, rt: rt}
	if n.Node, err = remoting.Start(rt, remoting.Config{Listen: here.host + ":0"}); err != nil {
		t.Fatal(err)
	}
	nobody := freeName(t)
	if _, err := n.ask(actor.NewPID(nobody, "x"), text("?")); !errors.Is(err, actor.ErrDeadLetter) {
		t.Error(err)
	}
	n.end() // the lines are written
	mu.Lock()
	defer mu.Unlock()
	if got := lines.String(); strings.Count(got, "no connection") != 1 || !strings.Contains(got, nobody) || !strings.Contains(got, "nobody listens") {
		t.Errorf("the log has %q", got)
	}
}

// A message to a PID that names a node by an alias reaches no actor. The reason contains the alias,
// and not its replacement on the wire.
func TestAlias(t *testing.T) {
	b := start(t, remoting.Config{Expose: everything})
	a := start(t, remoting.Config{Resolve: func(context.Context, string) (string, error) { return b.Name(), nil }})
	if _, err := a.ask(actor.NewPID("alias:1", "echo"), text("x")); !errors.Is(err, actor.ErrDeadLetter) {
		t.Error(err)
	}
	e := await(t, a, anyEvent[*remoting.NotSent]).Err
	if want := "another node answers, whose name is not alias:1"; !errors.Is(e, reconnect.ErrWrongNode) || !strings.HasSuffix(e.Error(), want) {
		t.Errorf("the reason is %v, want %s", e, want)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
