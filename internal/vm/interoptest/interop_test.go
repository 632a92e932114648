//go:build vm

// Package interoptest runs our programs against the unmodified ones of rdmacm-utils, on the kernels of package vm: rdmapeer and
// rdmactor ping inside the machine on its soft devices, and outside on the embedded device.
//
//	go test -tags vm ./internal/vm/interoptest
//	go test -tags vm ./internal/vm/interoptest -run 'TestInterop/6.1/.*ucmatose'
//	go test -tags vm ./internal/vm/interoptest -update    # writes the results to docs/interop.md
package interoptest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/vm"
)

const (
	cellLimit = time.Minute // for one cell, on a busy machine; most take a second or two
	firstPort = 20000       // of the cells' servers, each has its own
)

// TestInterop runs every cell on every kernel, one after the other in one boot. A machine that dies fails the cell under way, and the rest goes on
// in a fresh one.
func TestInterop(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"internal/interop/cmd/rdmapeer", "cmd/rdmactor"} {
		build := exec.Command("go", "build", "-o", bin, "github.com/rdmactor/rdmactor/"+name)
		build.Env = append(build.Environ(), "CGO_ENABLED=0")
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", name, err, said)
		}
	}
	passed := make(results)
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			b := &bench{t: t, kernel: kernel, bin: bin}
			defer b.end(t)
			for i, c := range cells() {
				c.port = strconv.Itoa(firstPort + i)
				ran := false
				ok := t.Run(c.String(), func(t *testing.T) { ran = true; b.run(t, c) })
				if ran {
					passed.note(kernel, c, ok)
				}
			}
		})
	}
	passed.document(t)
}

// bench is a machine that is there when it is needed.
type bench struct {
	t      *testing.T
	kernel string
	bin    string
	m      *vm.Machine
}

// machine is the machine under way, or a fresh one.
func (b *bench) machine(t *testing.T) *vm.Machine {
	t.Helper()
	if b.m != nil {
		return b.m
	}
	forward := make(map[int]int)
	for i, c := range cells() {
		if c.over == iwarp && !c.ourServer {
			forward[firstPort+i] = 0
		}
	}
	m, err := vm.Boot(t.Context(), vm.Config{
		Kernel: b.kernel, Share: map[string]string{"/share": b.bin}, Forward: forward, Logf: b.t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.m = m
	// No packet leaves for a group without a route.
	b.must(t, "rig-active rxe0 siw0 && rig-host-siw && ip route add 239.1.1.0/24 dev rx0")
	return m
}

// must runs a script that is not what is tested.
func (b *bench) must(t *testing.T, script string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), cellLimit)
	defer stop()
	r, err := b.m.Run(ctx, script)
	if err != nil || r.Code != 0 {
		b.close(t) // what comes after gets a fresh one
		t.Fatalf("%s: exit code %d, %v\n%s", script, r.Code, err, r.Output)
	}
	return r.Output
}

// close ends the machine.
func (b *bench) close(t *testing.T) {
	if b.m == nil {
		return
	}
	if err := b.m.Close(); err != nil {
		t.Error(err)
	}
	b.m = nil
}

// died forgets a machine that died.
func (b *bench) died(t *testing.T, err error) {
	if errors.Is(err, vm.ErrDied) {
		b.close(t)
	}
}

// end checks what the cells have left in the last machine, and closes it.
func (b *bench) end(t *testing.T) {
	if b.m == nil {
		return
	}
	for _, kind := range []string{"cm_id", "qp", "cq", "mr", "pd", "ctx", "srq"} {
		for line := range strings.Lines(b.must(t, "rdma resource show "+kind)) {
			if strings.Contains(line, " pid ") { // the kernel's own have none
				t.Errorf("left behind: %s", strings.TrimSpace(line))
			}
		}
	}
	log := b.must(t, "dmesg")
	for line := range strings.Lines(log) {
		for _, bad := range []string{"WARNING", "BUG", "Oops", "Call Trace", "general protection", "refcount"} {
			if strings.Contains(line, bad) {
				t.Errorf("the kernel complains: %s", strings.TrimSpace(line))
			}
		}
	}
	if t.Failed() {
		t.Logf("the kernel's log:\n%s", log)
	}
	b.close(t)
}

// run is one cell.
func (b *bench) run(t *testing.T, c cell) {
	if *theirs && c.wantFailed != "" {
		t.Skip("theirs do not look at sizes")
	}
	b.machine(t)
	ctx, stop := context.WithTimeout(t.Context(), cellLimit)
	defer stop()
	at := b.place(c)
	server := b.start(ctx, t, c, c.server, at.listen, c.ourServer)
	if c.over == iwarp && c.ourServer {
		at.dial = net.JoinHostPort("10.0.2.2", b.listening(ctx, t, server))
	} else {
		b.listens(ctx, t, c, server)
	}
	client := b.start(ctx, t, c, c.client, at.dial, !c.ourServer)
	told := client.wait()
	if c.wantFailed != "" {
		if told.code == 0 || !strings.Contains(told.output, c.wantFailed) {
			t.Errorf("%s: want a failure that says %q", told, c.wantFailed)
		}
		return
	}
	served := server.wait()
	b.died(t, errors.Join(told.err, served.err))
	for _, end := range []struct {
		outcome
		says string
	}{{told, c.clientSays}, {served, c.serverSays}} {
		if !end.fine(end.says) {
			t.Errorf("want exit code 0 and %q\n\nthe client:\n%v\n\nthe server:\n%v", end.says, told, served)
			return
		}
	}
}

// place is where a cell's server listens, and where its client finds it.
type place struct{ listen, dial string }

func (b *bench) place(c cell) place {
	switch {
	case c.over == rxe:
		return place{net.JoinHostPort("10.10.1.1", c.port), net.JoinHostPort("10.10.1.1", c.port)}
	case c.over == siw:
		return place{net.JoinHostPort("10.10.2.1", c.port), net.JoinHostPort("10.10.2.1", c.port)}
	case c.ourServer:
		return place{listen: "127.0.0.1:0"} // it says which port it got
	}
	n, _ := strconv.Atoi(c.port)
	return place{net.JoinHostPort("10.0.2.15", c.port), b.m.Forwarded(n)}
}

// listens waits until the kernel has the server's listener, or, as nobody listens to a group, has joined it for the receiver.
func (b *bench) listens(ctx context.Context, t *testing.T, c cell, server *process) {
	t.Helper()
	port := c.port
	if strings.HasPrefix(c.server, "udaddy") {
		port = "7174"
	}
	sign := fmt.Sprintf("rdma resource show cm_id | grep -q 'LISTEN.*:%s '", port)
	if strings.HasPrefix(c.server, "mckey") {
		sign = "ip maddr show dev rx0 | grep -q 'inet *239.1.1.1'"
	}
	r, err := b.m.Run(server.while(ctx), "until "+sign+"; do sleep 0.05; done")
	if b.died(t, err); err != nil || r.Code != 0 {
		server.stop()
		t.Fatalf("the server does not listen: %v", errors.Join(err, errors.New(server.wait().String())))
	}
}

// listening waits until a server outside says where it listens, and returns the port.
func (b *bench) listening(ctx context.Context, t *testing.T, server *process) string {
	t.Helper()
	for ctx = server.while(ctx); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		for line := range strings.Lines(server.said()) {
			if at, ok := strings.CutPrefix(line, "listening on "); ok && strings.HasSuffix(at, "\n") {
				if _, port, err := net.SplitHostPort(strings.TrimSpace(at)); err == nil {
					return port
				}
			}
		}
	}
	t.Fatalf("the server does not say where it listens: %v", server.wait())
	return ""
}

// ours is the command line of our program for one of theirs.
func ours(bin, line, device string) []string {
	words := strings.Fields(line)
	if words[0] == "rping" {
		return append([]string{filepath.Join(bin, "rdmactor"), "ping", "--device", device}, words[1:]...)
	}
	return append([]string{filepath.Join(bin, "rdmapeer"), words[0], "--device", device}, words[1:]...)
}
