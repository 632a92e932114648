//go:build vm

// Package interoptest runs this project's programs against the unmodified programs of rdmacm-utils,
// on the kernels of package vm. rdmapeer and rdmactor ping run inside the machine on its soft
// devices, and outside on the embedded device.
//
//	go test -tags vm ./lab/vm/interoptest
//	go test -tags vm ./lab/vm/interoptest -run 'TestInterop/6.1/.*ucmatose'
//	go test -tags vm ./lab/vm/interoptest -update    # writes the results to docs/interop.md
package interoptest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

const (
	cellLimit = 5 * time.Minute // per cell, on a busy machine; most take a second or two
	stepLimit = time.Minute     // per step of rdmapeer
	attempts  = 5               // for a cell that fails because of siw's races
	firstPort = 20000           // of the cells' servers; each server has a different port
)

// TestInterop runs every cell on every kernel, one after the other in one boot. If a machine dies,
// the current cell runs once more in a fresh machine, and the rest runs there too.
func TestInterop(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"lab/interop/cmd/rdmapeer", "cmd/rdmactor"} {
		file, err := vmtest.Compile(t.Context(), "build", "github.com/rdmactor/rdmactor/"+name)
		if err != nil {
			t.Fatal(err)
		}
		copyProgram(t, file, filepath.Join(bin, path.Base(name)))
	}
	compileC(t, "testdata/writeimm.c", filepath.Join(bin, "writeimm"))
	passed := make(results)
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			b := newBench(t, kernel, bin)
			for i, c := range cells() {
				c.port = strconv.Itoa(firstPort + i)
				ran := false
				ok := t.Run(c.String(), func(t *testing.T) { ran = true; b.run(t, c) })
				if ran {
					passed.note(kernel, c, ok)
				}
			}
			b.Clean(t)
		})
	}
	passed.document(t)
}

// copyProgram copies a program to the directory that the machine shares.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	program, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compileC compiles a program against librdmacm and libibverbs. Debian has their headers in
// librdmacm-dev and libibverbs-dev.
func compileC(t *testing.T, from, to string) {
	t.Helper()
	cc := exec.Command("cc", "-Wall", "-Werror", "-O1", "-o", to, from, "-lrdmacm", "-libverbs")
	if said, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cc, err, said)
	}
}

// bench is the machine and the directory in which the cells of a kernel run.
type bench struct {
	*vmtest.Bench
	bin string
}

func newBench(t *testing.T, kernel, bin string) *bench {
	forward := make(map[int]int)
	for i, c := range cells() {
		if c.over == iwarp && !c.ourServer {
			forward[firstPort+i] = 0
		}
	}
	c := vm.Config{Kernel: kernel, Share: map[string]string{"/share": bin}, Forward: forward}
	// No packet leaves for a group without a route.
	return &bench{vmtest.NewBench(t, c, "set -e; rig-active rxe0 siw0; rig-host-siw; ip route add 239.1.1.0/24 dev rx0"), bin}
}

// run runs one cell. Between two siw it runs again if it fails: siw's set-up has two races, which a
// slow machine loses often (docs/kernel.md).
func (b *bench) run(t *testing.T, c cell) {
	if *theirs && c.wantFailed != "" {
		t.Skip("theirs do not look at sizes")
	}
	for attempt := 1; ; attempt++ {
		err := b.Try(t, func(m *vm.Machine) error { return (&round{c, m, b.bin}).play(t.Context()) })
		if err == nil {
			return
		}
		if c.over != siw || attempt == attempts {
			t.Error(err)
			return
		}
		t.Logf("attempt %d, perhaps of siw's races: %v", attempt, err)
	}
}

// round is one run of a cell in a machine.
type round struct {
	cell
	m   *vm.Machine
	bin string
}

func (r *round) play(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, cellLimit, fmt.Errorf("no end within %s", cellLimit))
	defer stop()
	at := r.place()
	server, err := r.start(ctx, r.server, at.listen, r.ourServer)
	if err != nil {
		return err
	}
	defer server.end()
	if r.over == iwarp && r.ourServer {
		var port string
		port, err = listening(ctx, server)
		at.dial = net.JoinHostPort("10.0.2.2", port)
	} else {
		err = r.listens(ctx, server)
	}
	if err != nil {
		return err
	}
	client, err := r.start(ctx, r.client, at.dial, !r.ourServer)
	if err != nil {
		return err
	}
	defer client.end()
	played := client.wait()
	if r.wantFailed != "" {
		if played.code == 0 || !strings.Contains(played.output, r.wantFailed) {
			server.end()
			return errors.Join(fmt.Errorf("%s: want a failure that says %q", played, r.wantFailed), played.err, server.err)
		}
		return nil
	}
	served := server.wait()
	if !played.fine(r.clientSays) || !served.fine(r.serverSays) {
		return errors.Join(fmt.Errorf("want exit code 0, %q of the client and %q of the server\n\nthe client:\n%v\n\nthe server:\n%v",
			r.clientSays, r.serverSays, played, served), played.err, served.err)
	}
	return nil
}

// place has the address on which a cell's server listens, and the one to which its client connects.
type place struct{ listen, dial string }

func (r *round) place() place {
	switch {
	case r.over == rxe:
		return place{net.JoinHostPort("10.10.1.1", r.port), net.JoinHostPort("10.10.1.1", r.port)}
	case r.over == siw:
		return place{net.JoinHostPort("10.10.2.1", r.port), net.JoinHostPort("10.10.2.1", r.port)}
	case r.ourServer:
		return place{listen: "127.0.0.1:0"} // the server prints its port
	}
	n, _ := strconv.Atoi(r.port)
	return place{net.JoinHostPort("10.0.2.15", r.port), r.m.Forwarded(n)}
}

// listens waits until the kernel has the server's listener. A group has no listener, so for a group
// it waits until the kernel has joined it for the receiver.
func (r *round) listens(ctx context.Context, server *process) error {
	port := r.port
	if strings.HasPrefix(r.server, "udaddy") {
		port = "7174"
	}
	sign := fmt.Sprintf("rdma resource show cm_id | grep -q 'LISTEN.*:%s '", port)
	if strings.HasPrefix(r.server, "mckey") {
		sign = "ip maddr show dev rx0 | grep -q 'inet *239.1.1.1'"
	}
	result, err := r.m.Run(server.while(ctx), "until "+sign+"; do sleep 0.05; done")
	if err == nil && result.Code == 0 {
		return nil
	}
	server.stop()
	return errors.Join(fmt.Errorf("the server does not listen: exit code %d", result.Code), err, errors.New(server.wait().String()))
}

// listening waits until a server outside the machine prints its address, and returns the port.
func listening(ctx context.Context, server *process) (string, error) {
	for ctx = server.while(ctx); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		for line := range strings.Lines(server.said()) {
			if at, ok := strings.CutPrefix(line, "listening on "); ok && strings.HasSuffix(at, "\n") {
				if _, port, err := net.SplitHostPort(strings.TrimSpace(at)); err == nil {
					return port, nil
				}
			}
		}
	}
	return "", fmt.Errorf("the server does not say where it listens: %v", server.wait())
}

// ours returns the command line of this project's program for one of rdmacm-utils.
func ours(bin, line, device string) []string {
	words := strings.Fields(line)
	if words[0] == "rping" {
		return append([]string{filepath.Join(bin, "rdmactor"), "ping", "--device", device}, words[1:]...)
	}
	return append([]string{filepath.Join(bin, "rdmapeer"), words[0], "--device", device, "--timeout", stepLimit.String()}, words[1:]...)
}
