package pacluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
)

// open opens a runtime for a test, in a separate ActorSystem.
func open(t *testing.T) *rdma.Runtime {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond)) // a goroutine lasts as long
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		sys.Shutdown()
	})
	return rt
}

// failing is a provider that does not start.
type failing struct {
	cluster.ClusterProvider
	err any
}

func (f failing) StartMember(*cluster.Cluster) error {
	if f.err == nil {
		runtime.Goexit()
	}
	if err, ok := f.err.(error); ok {
		return err
	}
	panic(f.err)
}

func (failing) Shutdown(bool) error { return nil }

// What Proto.Actor panics with is an error, and nothing is left of a start that has failed.
func TestStartFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	automanaged := func(listen string) cluster.ClusterProvider {
		p, err := Automanaged{Listen: listen}.Provider()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	free := freeAddrs(t, 1)[0]
	for what, tt := range map[string]struct {
		cfg  Config
		want error
	}{
		"the provider fails": {Config{Provider: failing{err: unix.EPERM}, Remoting: remoting.Config{Name: free}}, unix.EPERM},
		"its port is taken":  {Config{Provider: automanaged(taken.Addr().String()), Remoting: remoting.Config{Name: free}}, unix.EADDRINUSE},
		"the name is taken":  {Config{Provider: failing{}, Remoting: remoting.Config{Name: taken.Addr().String()}}, unix.EADDRINUSE},
		"no name":            {Config{Provider: failing{}}, unix.EINVAL},
		"it panics":          {Config{Provider: failing{err: "x"}, Remoting: remoting.Config{Name: free}}, nil},
		"it exits":           {Config{Provider: failing{}, Remoting: remoting.Config{Name: free}}, nil},
		"no provider":        {Config{Remoting: remoting.Config{Name: free}}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			rt := open(t)
			m, err := Start(t.Context(), rt, tt.cfg)
			if m != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Start gives %v, %v", m, err)
			}
		})
	}
}

// waiting is a provider whose server is not there.
type waiting struct {
	cluster.ClusterProvider
	server, left chan struct{}
}

func (w waiting) StartMember(*cluster.Cluster) error {
	<-w.server
	return nil
}

func (w waiting) Shutdown(bool) error {
	close(w.left)
	return nil
}

// Start does not wait forever for a provider's server. A member that is there later leaves again.
func TestStartIsBounded(t *testing.T) {
	rt := open(t)
	w := waiting{server: make(chan struct{}), left: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	m, err := Start(ctx, rt, Config{Provider: w, Remoting: remoting.Config{Name: freeAddrs(t, 1)[0]}})
	if m != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start gives %v, %v", m, err)
	}
	if d := time.Since(begun); d > 2*failedFor {
		t.Errorf("that takes %v", d)
	}
	close(w.server)
	select {
	case <-w.left:
	case <-time.After(patience):
		t.Error("it stays a member")
	}
}

// Proto.Actor's remote would get the messages if it were there first.
func TestStartedTooLate(t *testing.T) {
	rt := open(t)
	n, err := remoting.Start(rt, remoting.Config{Name: freeAddrs(t, 1)[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if m, err := Start(t.Context(), rt, Config{Provider: failing{}, Remoting: remoting.Config{Name: freeAddrs(t, 1)[0]}}); m != nil || !errors.Is(err, ErrStarted) {
		t.Errorf("Start gives %v, %v", m, err)
	}
}

func TestAutomanaged(t *testing.T) {
	for _, listen := range []string{"", "nowhere", "127.0.0.1:x"} {
		if _, err := (Automanaged{Listen: listen}).Provider(); err == nil {
			t.Errorf("%q is taken as an address", listen)
		}
	}
}
