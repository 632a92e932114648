//go:build chromium

package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

var (
	upper  = rpc.NewMethod[wrapperspb.StringValue, wrapperspb.StringValue]("text.Upper")
	hatred = rpc.RegisterCode(301, "the server does not like that")
)

// calls serves a method to a client, which calls it repeatedly until the test ends; every other
// call fails.
func (r *rig) calls() *rpc.Server {
	r.Helper()
	server := rpc.NewServer(r.rt)
	rpc.Handle(server, upper, func(_ context.Context, q *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
		if q.Value == "" {
			return nil, hatred
		}
		return wrapperspb.String(strings.ToUpper(q.Value)), nil
	})
	addr, err := server.Listen(r.Context(), "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	client, err := rpc.Dial(r.Context(), r.rt, addr.String())
	if err != nil {
		r.Fatal(err)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond):
				_, _ = rpc.Call(context.Background(), client, upper, wrapperspb.String(strings.Repeat("x", i%2)))
			}
		}
	}()
	r.Cleanup(func() {
		close(over)
		<-ended
		client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			r.Error(err)
		}
	})
	return server
}

// node makes r a node, to which another one sends.
func (r *rig) node() *remoting.Node {
	r.Helper()
	node, err := remoting.Start(r.rt, remoting.Config{Listen: "127.0.0.1:0", Expose: remoting.Expose{Reach: []string{"greeter"}}})
	if err != nil {
		r.Fatal(err)
	}
	greeter := actor.PropsFromFunc(func(ctx actor.Context) {
		if name, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Respond(name)
		}
	}, r.rt.OnLoop())
	if _, err := r.sys.Root.SpawnNamed(greeter, "greeter"); err != nil {
		r.Fatal(err)
	}
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New()})
	if err != nil {
		r.Fatal(err)
	}
	far, err := remoting.Start(rt, remoting.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		defer cancel()
		if err := errors.Join(far.Shutdown(ctx), rt.Shutdown(ctx), node.Shutdown(ctx)); err != nil {
			r.Error(err)
		}
		sys.Shutdown()
	})
	to := actor.NewPID(node.Name(), "greeter")
	if _, err := remoting.Result(sys.Root.RequestFuture(to, wrapperspb.String("hello"), testPatience)); err != nil {
		r.Fatal(err)
	}
	return node
}

// TestChromiumSections: the tables of rpc and remoting are sections like a program's, and live.
func TestChromiumSections(t *testing.T) {
	var server atomic.Pointer[rpc.Server]
	var node atomic.Pointer[remoting.Node]
	r := newRig(t, Config{Interval: 200 * time.Millisecond, Sections: []Section{
		Rows("methods", "Methods", func() []rpc.MethodInfo {
			if s := server.Load(); s != nil {
				return s.Inspect()
			}
			return nil
		}),
		Rows("peers", "Peers", func() []remoting.PeerInfo {
			if n := node.Load(); n != nil {
				return n.Peers()
			}
			return nil
		}),
	}}, rdma.Config{})
	server.Store(r.calls())
	node.Store(r.node())
	b := open(t, r)
	cell := func(column string) string {
		return `document.querySelector("main tbody tr").cells[[...document.querySelectorAll("main th")].findIndex(e => e.dataset.name === "` + column + `")].textContent`
	}
	b.Press(`#tabs a[href="#/sections/methods"]`)
	b.Want(`document.querySelectorAll("main tbody tr").length > 0 && ` + cell("method") + ` === "text.Upper" && Number(` + cell("failed") + `) > 1`)
	b.Want(cell("errors") + `.includes("301") || ` + cell("errors") + `.includes("like")`)
	b.Want(`/\d (µs|ms)/.test(` + cell("p99_seconds") + `) && Number(` + cell("per_second") + `) > 0`)
	var was float64
	b.Must(b.Eval(`Number(`+cell("started")+`.replaceAll(",", ""))`, &was))
	b.Want(`Number(` + cell("started") + `.replaceAll(",", "")) > ` + fmt.Sprint(was))
	b.Press(`#tabs a[href="#/sections/peers"]`)
	b.Want(`document.querySelectorAll("main tbody tr").length === 1 && ` + cell("connected") + ` === "yes" && /127\.0\.0\.1:\d+/.test(document.querySelector("main tbody").textContent)`)
	if errs := b.Errors(); len(errs) > 0 {
		t.Errorf("the browser complains: %q", errs)
	}
}
