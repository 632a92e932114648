//go:build linux && rdma

package remoting_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
)

// These tests run where the kernel has RDMA devices: see lab/vm.

// kernelVariable makes the processes of a test use the kernel's devices, too.
const kernelVariable = "REMOTING_KERNEL"

func init() {
	if os.Getenv(kernelVariable) != "" {
		here = kernel()
	}
}

func kernel() bed {
	return bed{os.Getenv("RDMA_ADDR"), func() cmid.Driver { return ucm.New() }}
}

// onKernel puts the test's nodes on the kernel's devices. Nothing of this process's is left there
// behind the test.
func onKernel(t *testing.T) {
	t.Helper()
	if os.Getenv("RDMA_ADDR") == "" {
		t.Fatal("RDMA_ADDR is not set: this test runs in the rig's machine")
	}
	t.Setenv(kernelVariable, "1")
	was := here
	here = kernel()
	t.Cleanup(func() {
		here = was
		if left := resources(t); left != "" {
			t.Errorf("the kernel still has\n%s", left)
		}
	})
}

// resources returns the resources of this process according to rdma(8). The kernel releases some of
// them a moment after it has confirmed that.
func resources(t *testing.T) (s string) {
	t.Helper()
	pid := fmt.Sprintf("pid %d ", os.Getpid())
	for range 50 {
		s = ""
		for _, what := range []string{"qp", "cq", "mr", "pd", "cm_id"} {
			out, err := exec.Command("rdma", "resource", "show", what).CombinedOutput()
			if err != nil {
				t.Fatalf("rdma resource show %s: %v: %s", what, err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, os.Getenv("RDMA_DEVICE")+"/") && strings.Contains(line, pid) {
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

// What nodes do for each other on the embedded device they do on the kernel's, too.
func TestKernelNodes(t *testing.T) {
	for _, test := range []struct {
		name string
		f    func(*testing.T)
	}{
		{"requests", TestRequestFuture},
		{"sender and header", TestSenderAndHeader},
		{"watch", TestWatch},
		{"stop and poison", TestStopAndPoison},
		{"nobody", TestNobody},
		{"both begin", TestBothBegin},
		{"two processes", TestTwoProcesses},
		{"kill", TestKill},
		{"restart", TestRestart},
	} {
		t.Run(test.name, func(t *testing.T) {
			onKernel(t)
			test.f(t)
		})
	}
}

// Many messages, of two senders that wait for room, to each kind of actor: all arrive, in order.
func TestKernelOrder(t *testing.T) {
	onKernel(t)
	const n = 5000
	a, b := start(t, remoting.Config{Overflow: remoting.Block, Queue: 64 << 10}), start(t, remoting.Config{Expose: everything})
	for kind, options := range b.kinds() {
		b.spawn("order-"+kind, order(), options...)
		to := b.pid("order-" + kind)
		var senders sync.WaitGroup
		for s := range 2 {
			senders.Go(func() {
				for i := range n {
					a.sys.Root.Send(to, text(fmt.Sprint(s, " ", i+1)))
				}
			})
		}
		senders.Wait()
		got, err := a.ask(to, wrapperspb.Bool(true))
		if want := fmt.Sprint(2*n, " received, 0 wrong"); err != nil || got.(*wrapperspb.StringValue).Value != want {
			t.Errorf("%s: %v, %v, want %s", kind, got, err, want)
		}
	}
}

// Messages below and above the sizes of an immediate send and of a gathered frame, up to the
// largest.
func TestKernelLarge(t *testing.T) {
	onKernel(t)
	a, b := start(t, remoting.Config{Expose: everything}), start(t, remoting.Config{Expose: everything})
	b.spawn("bytes", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			ctx.Respond(m)
		}
	}, b.rt.OnLoop())
	for _, size := range []int{0, 15 << 10, 16 << 10, 17 << 10, 63 << 10, 64 << 10, 65 << 10, 1 << 20, 4<<20 - 1<<10} {
		want := bytes.Repeat([]byte{byte(size >> 10), 1, 2}, size/3)
		got, err := a.ask(b.pid("bytes"), wrapperspb.Bytes(want))
		if err != nil || !bytes.Equal(got.(*wrapperspb.BytesValue).Value, want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// One node shuts down while the other sends it messages and requests: each future gets an answer or
// an error immediately, and everything ends in time.
func TestKernelShutdown(t *testing.T) {
	onKernel(t)
	a, b := start(t, remoting.Config{}), open(t, remoting.Config{Expose: everything}, 1)
	b.spawn("echo", echo)
	b.spawn("mute", func(actor.Context) {})
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a.sys.Root.Send(b.pid("mute"), text("?"))
				if _, err := a.ask(b.pid("echo"), text("x")); errors.Is(err, actor.ErrTimeout) {
					t.Error("a request was not answered")
				}
			}
		})
	}
	asked := a.sys.Root.RequestFuture(b.pid("mute"), text("?"), soon)
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	var unknown *remoting.Unknown
	if _, err := remoting.Result(asked); !errors.As(err, &unknown) {
		t.Errorf("a request without an answer: %v", err)
	}
	within(t, "the end of a node under load", began, soon/2)
	close(stop)
	senders.Wait()
	b.close()
}

// A node on the kernel's soft-iWARP and one on the embedded device, whichever begins.
func TestKernelEmbedded(t *testing.T) {
	if os.Getenv("RDMA_KIND") != "siw" {
		return // the other devices speak no iWARP
	}
	for name, kernelFirst := range map[string]bool{"the kernel's begins": true, "the embedded begins": false} {
		t.Run(name, func(t *testing.T) {
			onKernel(t)
			first := start(t, remoting.Config{Expose: everything})
			here.device = func() cmid.Driver { return iwarp.New() }
			second := start(t, remoting.Config{Expose: everything})
			if !kernelFirst {
				first, second = second, first
			}
			asksFor(t, first, second)
			asksFor(t, second, first)
		})
	}
}

// asksFor sends requests of several sizes from a to b.
func asksFor(t *testing.T, a, b *node) {
	t.Helper()
	b.spawn("echo", echo, b.rt.OnLoop())
	for _, size := range []int{1, 20 << 10, 100 << 10, 1 << 20} {
		want := strings.Repeat("x", size)
		got, err := a.ask(b.pid("echo"), text(want))
		if err != nil || got.(*wrapperspb.StringValue).Value != want {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
