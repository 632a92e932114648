package workswith

import (
	"context"
	"net"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rdmanet"
)

func TestMain(m *testing.M) {
	// goroutines of fasthttp's: one never ends, two sleep for ten seconds before they end
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
	)
}

// listen returns a listener and a dialer, each on a separate runtime.
func listen(t *testing.T) (net.Listener, *rdmanet.Dialer) {
	t.Helper()
	l, err := rdmanet.Listen(t.Context(), openRuntime(t), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, rdmanet.NewDialer(openRuntime(t))
}

// openRuntime opens a runtime on the embedded device, and shuts it down after the test: nothing of
// the program may keep a connection.
func openRuntime(t *testing.T) *rdma.Runtime {
	t.Helper()
	rt, err := rdma.Open(actor.NewActorSystem(), rdma.Config{Device: iwarp.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}
