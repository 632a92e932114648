//go:build linux && rdma

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/compare"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/kernel"
	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/inspect"
)

// kernelProgram makes a listener and a connection on the kernel's devices. It returns
// the address of its page.
func kernelProgram(t *testing.T) string {
	t.Helper()
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(sys.Shutdown)
	rt, err := rdma.Open(sys, rdma.Config{Device: ucm.New(), Security: &rdma.Security{Mode: rdma.Insecure}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	server := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
			ctx.Respond(&rdma.Accept{})
		}
	}, rt.OnLoop()))
	addr := os.Getenv("RDMA_ADDR")
	on, err := rdma.Ask[*rdma.Listening](t.Context(), rt, rt.CreateID(server), &rdma.Serve{Addr: addr + ":0"})
	if err != nil {
		t.Fatal(err)
	}
	established := make(chan struct{})
	client := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.Established); ok {
			close(established)
		}
	}, rt.OnLoop()))
	sys.Root.Send(rt.CreateID(client), &rdma.Dial{Addr: on.Local.String()})
	select {
	case <-established:
	case <-time.After(patience):
		t.Fatal("not established")
	}
	page, err := inspect.New(rt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(page.Close)
	web := httptest.NewServer(page)
	t.Cleanup(web.Close)
	return web.URL
}

// facts returns an identifier of package kernel as rdma(8) prints it.
func facts(k kernel.ID) map[string]string {
	f := map[string]string{
		"link": fmt.Sprintf("%s/%d", k.Device, k.Port), "cm-idn": strconv.FormatUint(uint64(k.CMIDN), 10), "state": k.State, "ps": k.PS,
	}
	for name, value := range map[string]string{"qp-type": k.Type, "comm": k.Command, "src-addr": k.Local.String(), "dst-addr": k.Peer.String()} {
		if value != "" {
			f[name] = value
		}
	}
	if k.LQPN != 0 {
		f["lqpn"] = strconv.FormatUint(uint64(k.LQPN), 10)
	}
	if k.PID != 0 {
		f["pid"] = strconv.FormatUint(uint64(k.PID), 10)
	}
	return f
}

// spelled returns the facts of an identifier as one string.
func spelled(f map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&b, "%s %s ", name, f[name])
	}
	return b.String()
}

// TestKernelIDs: package kernel's table of identifiers equals that of rdma(8), and each of this
// process's identifiers is in both.
func TestKernelIDs(t *testing.T) {
	url := kernelProgram(t)
	said, err := exec.CommandContext(t.Context(), "rdma", "resource", "show", "cm_id").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	var theirs, ours []string
	for l := range strings.Lines(string(said)) {
		f, words := make(map[string]string), strings.Fields(l)
		for i := 0; i+1 < len(words); i += 2 {
			f[words[i]] = words[i+1]
		}
		theirs = append(theirs, spelled(f))
	}
	ids, steady, err := kernel.IDs()
	if err != nil || !steady {
		t.Fatal(steady, err)
	}
	for _, k := range ids {
		ours = append(ours, spelled(facts(k)))
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	if len(ours) < 3 || !slices.Equal(ours, theirs) {
		t.Errorf("ours:\n%s\n\nrdma(8)'s:\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
	out, errs, err := output(t, "ids", url, "--kernel", "--pid", strconv.Itoa(os.Getpid()), "--json")
	var pairs []compare.Pair
	if err == nil {
		err = json.Unmarshal([]byte(out), &pairs)
	}
	if err != nil || errs != "" {
		t.Fatalf("%v %s\n%s", err, errs, out)
	}
	for _, p := range pairs {
		if p.Who != compare.Both {
			t.Errorf("only one of them has it, or in another state: %+v", p)
		}
	}
	if len(pairs) != 3 { // the listener and both sides of the connection
		t.Errorf("%d identifiers:\n%s", len(pairs), out)
	}
}
