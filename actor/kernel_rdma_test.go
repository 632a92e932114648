//go:build linux && rdma

package actor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/leak"
)

// These tests run where the kernel has RDMA devices: see lab/vm.

// env returns a property of the machine.
func env(tb testing.TB, name string) string {
	tb.Helper()
	v := os.Getenv(name)
	if v == "" {
		tb.Fatalf("%s is not set: this test runs in the rig's machine", name)
	}
	return v
}

// openKernel opens a runtime over the kernel's devices.
func openKernel(tb testing.TB, sys *actor.ActorSystem, cfg ...Config) *Runtime {
	tb.Helper()
	c := one(cfg)
	c.Device, c.Logger, c.Security = ucm.New(), noErrors(tb), cmp.Or(c.Security, &Security{Mode: Insecure})
	return openRuntime(tb, sys, c)
}

// leavesNothing checks that nothing of the test's runtimes is left in the kernel when they are
// shut down.
func leavesNothing(tb testing.TB) {
	tb.Helper()
	device := env(tb, "RDMA_DEVICE")
	leak.Files(tb)
	tb.Cleanup(func() {
		if now := resources(tb, device); now != "" {
			tb.Errorf("the kernel still holds\n%s", now)
		}
	})
}

// resources returns the output of rdma(8) for this process and a device. The kernel returns some of
// its resources a moment after it has reported so.
func resources(tb testing.TB, device string) (s string) {
	tb.Helper()
	pid := fmt.Sprintf("pid %d ", os.Getpid())
	for range 50 {
		s = ""
		for _, what := range []string{"qp", "cq", "mr", "pd", "cm_id", "srq"} {
			out, err := exec.Command("rdma", "resource", "show", what).CombinedOutput()
			if err != nil {
				tb.Fatalf("rdma resource show %s: %v: %s", what, err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, device+"/") && strings.Contains(line, pid) {
					s += what + " " + line
				}
			}
		}
		if s == "" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return s
}

// echo answers every message with itself, on the loop.
func echo(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *ConnectRequest:
		ctx.Respond(&Accept{})
	case *Received:
		ctx.Respond(NewSend(m.Data))
	}
}

// serveKernel makes a new runtime listen on addr. Each connection has an owner that echoes.
func serveKernel(tb testing.TB, rt *Runtime, addr string, cfg ...IDConfig) (at string) {
	tb.Helper()
	owner := newProbe(tb, rt.sys, rt.OnLoop(), nil)
	c := one(cfg)
	c.Handler = actor.PropsFromFunc(echo)
	_, at = listen(owner, rt, addr, c)
	return at
}

// sizes are the echoes' lengths: below and above the inline limit of a work request, above the
// path's MTU, the largest.
var sizes = []int{0, 64, 1000, 4096, 20000, 64 << 10}

// talk sends each size once over each of n connections, and closes them.
func talk(tb testing.TB, rt *Runtime, at string, n int, cfg ...IDConfig) {
	tb.Helper()
	p := newProbe(tb, rt.sys, rt.OnLoop(), nil)
	ids := make([]*actor.PID, n)
	for i := range ids {
		ids[i] = rt.CreateID(p.pid, one(cfg))
		p.send(ids[i], &Dial{Addr: at})
	}
	for range ids {
		if e, _ := next[*Established](p); e.MaxMessage != 64<<10 {
			tb.Errorf("the peer takes %d bytes", e.MaxMessage)
		}
	}
	for _, size := range sizes {
		for i, id := range ids {
			p.send(id, NewSend(bytes.Repeat([]byte{byte(i + 1)}, size)))
		}
		for range ids {
			g := p.any()
			if _, ok := g.msg.(*Received); !ok || len(g.data) != size {
				tb.Fatalf("got %T with %d bytes, want %d bytes back", g.msg, len(g.data), size)
			}
			for i, id := range ids {
				if id.Equal(g.sender) && strings.Trim(g.data, string([]byte{byte(i + 1)})) != "" {
					tb.Fatalf("connection %d got other bytes back", i)
				}
			}
		}
	}
	for _, id := range ids {
		p.send(id, &Close{})
	}
	for range ids {
		end := until[*Closed](p)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != uint64(len(sizes)) {
			tb.Errorf("the end: %v", end)
		}
	}
}

// Echoes of all sizes between actors of one process, over one connection and over fifty.
func TestKernelEcho(t *testing.T) {
	leavesNothing(t)
	for _, n := range []int{1, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			sys := testSystem(t)
			rt := openKernel(t, sys)
			cfg := IDConfig{MaxMessage: 64 << 10, Credits: 4}
			at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", cfg)
			talk(t, rt, at, n, cfg)
		})
	}
}

// The same between two processes, and two loops each.
func TestKernelEchoBetweenProcesses(t *testing.T) {
	leavesNothing(t)
	if at := os.Getenv("ACTOR_TEST_DIAL"); at != "" {
		talk(t, openKernel(t, testSystem(t), Config{Loops: make([]eventloop.Config, 2)}), at, 1)
		talk(t, openKernel(t, testSystem(t), Config{Loops: make([]eventloop.Config, 2)}), at, 10, IDConfig{MaxMessage: 64 << 10, Credits: 4})
		return
	}
	rt := openKernel(t, testSystem(t), Config{Loops: make([]eventloop.Config, 2)})
	at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", IDConfig{MaxMessage: 64 << 10, Credits: 4})
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestKernelEchoBetweenProcesses$", "-test.v")
	cmd.Env = append(os.Environ(), "ACTOR_TEST_DIAL="+at)
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("the dialling process: %v\n%s", err, out)
	}
	if rt.Loops()[1].Arrived == 0 {
		t.Error("no connection was moved to the other loop")
	}
}

// Many messages one way, more than queues hold, with a slow reader: credits hold the sender back,
// nothing is lost.
func TestKernelFlow(t *testing.T) {
	leavesNothing(t)
	const n = 2000
	rt := openKernel(t, testSystem(t), Config{Limits: Limits{SendQueue: n}})
	server, client := newProbe(t, rt.sys, rt.OffLoop(), nil), newProbe(t, rt.sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0", IDConfig{MaxMessage: 1 << 10, Credits: 7})
	c := rt.CreateID(client.pid, IDConfig{MaxMessage: 1 << 10, Credits: 7})
	client.send(c, &Dial{Addr: at})
	_, s := next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	next[*Established](client)
	for i := range n {
		client.send(c, NewSend(fmt.Append(nil, i)))
	}
	for i := range n {
		if g := server.any(); g.data != fmt.Sprint(i) {
			t.Fatalf("message %d is %v", i, g)
		}
	}
	client.send(c, &Close{})
	end := until[*Closed](client)
	if cl := end[len(end)-1].msg.(*Closed); cl.Err != nil || cl.Delivered != n {
		t.Errorf("the end: %v", end)
	}
}

// Requests that were not answered outlive their listener, and can be answered still; later ones are
// refused.
func TestKernelListenerGoesBeforeItsRequests(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	server, client := newProbe(t, rt.sys, rt.OnLoop(), nil), newProbe(t, rt.sys, rt.OnLoop(), nil)
	lis, at := listen(server, rt, env(t, "RDMA_ADDR")+":0")
	var requests []*actor.PID
	for range 3 {
		client.send(rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: at})
		_, s := next[*ConnectRequest](server)
		requests = append(requests, s)
	}
	server.send(lis, &DestroyID{})
	next[*Closed](server)
	server.send(requests[0], &Accept{})
	next[*Established](server)
	next[*Established](client)
	server.send(requests[1], &Reject{})
	next[*Closed](server)
	if r := until[*Closed](client); kinds(r) != "Rejected Closed" {
		t.Errorf("got %v", r)
	}
	client.send(rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: at})
	f, _ := next[Failure](client)
	is(t, f, unix.ECONNREFUSED)
	next[*Closed](client)
} // the third is left to Shutdown

// A peer that does not answer costs its own deadline and no other connection's time; Shutdown names
// the identifiers that the kernel keeps, or it keeps none.
func TestKernelSilentPeer(t *testing.T) {
	if env(t, "RDMA_KIND") == "siw" {
		t.Skip("soft-iWARP keeps the identifier while TCP tries, up to two minutes: TestFaultBlackHole has both devices")
	}
	leavesNothing(t)
	sys := testSystem(t)
	rt := openKernel(t, sys, Config{Timeouts: Timeouts{Connect: 2 * time.Second}})
	at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", IDConfig{MaxMessage: 64 << 10, Credits: 4})
	p := newProbe(t, sys, rt.OnLoop(), nil)
	id := rt.CreateID(p.pid, IDConfig{})
	begin := time.Now()
	p.send(id, &Dial{Addr: env(t, "RDMA_SILENT_ADDR") + ":7471"})
	talk(t, rt, at, 1, IDConfig{MaxMessage: 64 << 10, Credits: 4})
	f, _ := next[*Unreachable](p)
	is(t, f, unix.ETIMEDOUT)
	if took := time.Since(begin); took < 2*time.Second || took > 2*time.Second+emulated {
		t.Errorf("failed after %v", took)
	}
	talk(t, rt, at, 1, IDConfig{MaxMessage: 64 << 10, Credits: 4})
	next[*Closed](p)
}

// Datagrams through Call, on the device that has them.
func TestKernelDatagram(t *testing.T) {
	leavesNothing(t)
	if env(t, "RDMA_KIND") != "rxe" {
		t.Skip("iWARP has no datagrams")
	}
	sys := testSystem(t)
	datagram(t, sys, openKernel(t, sys), openKernel(t, sys), env(t, "RDMA_ADDR"), IDConfig{PortSpace: cmid.PortSpaceUDP})
}

// When a device is unplugged, each owner is notified once. Plugged in again, it works in the same
// process.
func TestKernelDeviceComesBack(t *testing.T) {
	leavesNothing(t)
	device, kind, netdev := env(t, "RDMA_DEVICE"), env(t, "RDMA_KIND"), env(t, "RDMA_NETDEV")
	sys := testSystem(t)
	rt := openKernel(t, sys)
	cfg := IDConfig{MaxMessage: 64 << 10, Credits: 4}
	server, client := newProbe(t, sys, rt.OnLoop(), echo), newProbe(t, sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0", cfg)
	const n = 5
	for range n {
		client.send(rt.CreateID(client.pid, cfg), &Dial{Addr: at})
		next[*Established](client)
	}
	rdma := func(args ...string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if out, err := exec.CommandContext(ctx, "rdma", args...).CombinedOutput(); err != nil {
			t.Fatalf("rdma %v: %v: %s", args, err, out)
		}
	}
	rdma("link", "delete", device)
	events := map[string]string{}
	for i := 0; i < n; {
		g := client.any()
		events[g.sender.Id] += kinds([]got{g}) + " "
		if _, ok := g.msg.(*Closed); ok {
			i++
		}
	}
	for id, s := range events {
		// the peer may be notified first, and disconnect
		if s != "DeviceRemoval Closed " && s != "Disconnected Closed " {
			t.Errorf("the owner of %s got %s", id, s)
		}
	}
	rdma("link", "add", device, "type", kind, "netdev", netdev)
	again := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", cfg)
	talk(t, rt, again, 2, cfg)
}
