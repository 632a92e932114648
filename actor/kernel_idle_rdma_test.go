//go:build linux && rdma

package actor

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// The cost of an idle connection: registered memory on the listening side and on the connecting
// one, and the machine's loss of free memory. The last is not exact.
func TestKernelIdleConnections(t *testing.T) {
	leavesNothing(t)
	const conns, most = 100, 64 << 10
	server, client := openKernel(t, testSystem(t)), openKernel(t, testSystem(t))
	owner := newProbe(t, server.sys, server.OnLoop(), func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			ctx.Respond(&Accept{})
		}
	})
	_, at := listen(owner, server, env(t, "RDMA_ADDR")+":0")
	p := newProbe(t, client.sys, client.OnLoop(), nil)
	dial := func() {
		p.send(client.CreateID(p.pid, IDConfig{}), &Dial{Addr: at, Timeout: time.Minute})
		next[*Established](p)
		until[*Established](owner)
	}
	dial() // what connections share is there then
	pinned, free := status(t, "/proc/self/status", "VmPin"), status(t, "/proc/meminfo", "MemAvailable")
	asked, asks := receiveMemory(server), receiveMemory(client)
	for range conns {
		dial()
	}
	asked, asks = (receiveMemory(server)-asked)/conns, (receiveMemory(client)-asks)/conns
	pinned, free = (status(t, "/proc/self/status", "VmPin")-pinned)/conns, (free-status(t, "/proc/meminfo", "MemAvailable"))/conns
	t.Logf("an idle connection takes %d bytes of receives where it was asked for, and %d where it has asked; "+
		"both ends of it have pinned %d KiB, and the machine has %d KiB less", asked, asks, pinned>>10, free>>10)
	if asked > most {
		t.Errorf("it takes %d bytes where it was asked for, want at most %d", asked, most)
	}
}

// receiveMemory returns how many bytes a runtime has registered to receive into.
func receiveMemory(rt *Runtime) (n int) {
	done := make(chan struct{})
	_ = rt.loops[0].el.Post(func() { // refused after the loop's end only
		defer close(done)
		n = rt.loops[0].RecvBudget.Total() - rt.loops[0].RecvBudget.Free
	})
	<-done
	return n
}

// status returns a line of such a file of the kernel's, in bytes.
func status(tb testing.TB, file, name string) (n int) {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			if _, err := fmt.Sscanf(rest, "%d kB", &n); err != nil {
				tb.Fatal(err)
			}
			return n << 10
		}
	}
	tb.Fatalf("%s says nothing of %s", file, name)
	return 0
}
