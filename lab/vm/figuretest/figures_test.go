//go:build vm

// Package figuretest compares rdmactor with librdmacm on the kernel's devices, both in one boot of
// a machine of package vm. It compares how long connections take from actors and from cmtime of
// rdma-core, and how many system calls they cost. It also checks what many identifiers leave
// behind.
//
//	go test -tags vm -count=1 -v ./lab/vm/figuretest
//	go test -tags vm -count=1 -v -timeout 60m ./lab/vm/figuretest -args -figures
//
// The first command checks with few identifiers that everything works, that nothing is left, and
// that a connection needs no more commands of the kernel than with librdmacm. The second command
// measures full series, interleaved, compares the times with their bars, and prints the rows of
// docs/figures.md. It needs a machine that does nothing else.
package figuretest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

var (
	full   = flag.Bool("figures", false, "take full series, hold the times to their bars, print the README's rows")
	rounds = flag.Int("rounds", 5, "runs of each program in a full series")
	kernel = flag.String("kernel", vm.Kernels[0], "the machine's `VERSION`")
)

// kind is a kind of device, with the limits of the comparison on it.
type kind struct {
	name string
	most int // number of connections that cmtime can make
	bar  float64
}

// libsiw, the C library's driver, takes the offset 0x90000 of a mapping to mean "none". That is the
// offset of the 145th queue of a process. cmtime has two completion queues, and two queues for each
// connection, so it can make 71 connections. The kernel and rdmactor do not have this limit.
var kinds = []kind{{"rxe", 1000, 1.2}, {"siw", 64, 2.5}}

// counts are the numbers of identifiers and rounds in a test.
type counts struct{ connect, alone, many, rounds, calls int }

func (k kind) counts() counts {
	if *full {
		return counts{connect: k.most, alone: 1000, many: 10_000, rounds: *rounds, calls: min(k.most, 101)}
	}
	return counts{connect: min(k.most, 100), alone: 100, many: 1000, rounds: 1, calls: 41}
}

// TestFigures boots a machine for each kind of device.
func TestFigures(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			g := &guest{t, vmtest.Boot(t, vm.Config{Kernel: *kernel}), k.name}
			vmtest.Program(t, g.m, "github.com/rdmactor/rdmactor/cmd/rdmactor")
			n := k.counts()
			var rows []string
			t.Run("calls", func(t *testing.T) { rows = append(rows, g.with(t).callsRows(n.calls)...) })
			t.Run("connect", func(t *testing.T) { rows = append(rows, g.with(t).connectRows(k, n)...) })
			t.Run("identifiers", func(t *testing.T) { rows = append(rows, g.with(t).manyRow(n.many)) })
			fmt.Printf("\n| %s, Linux %s | cmtime | rdmactor | |\n|---|---|---|---|\n%s\n\n", k.name, *kernel, strings.Join(rows, "\n"))
		})
	}
}

// connectRows compares times. Each program connects to cmtime's server and to rdmactor's. Beyond
// the limit of cmtime, rdmactor continues alone.
func (g *guest) connectRows(k kind, n counts) (rows []string) {
	load := hostLoad()
	theirs, ours := make(map[string][]float64), make(map[string][]float64)
	servers := []string{"cmtime", "rdmactor"}
	for range n.rounds {
		for _, server := range servers {
			theirs[server] = append(theirs[server], g.cmtime(server, n.connect))
			ours[server] = append(ours[server], g.rdmactor(server, n.connect))
		}
	}
	for _, server := range servers {
		ratio := median(ours[server]) / median(theirs[server])
		rows = append(rows, fmt.Sprintf("| %d connections, server %s, ms | %s | %s | %.2f (bar %.1f) |",
			n.connect, server, spread(theirs[server]), spread(ours[server]), ratio, k.bar))
		if *full && ratio > k.bar {
			g.t.Errorf("%d connections from actors to %s take %.2f times as long as cmtime's; the bar is %.1f", n.connect, server, ratio, k.bar)
		}
	}
	if n.alone > n.connect {
		rows = append(rows, fmt.Sprintf("| %d connections, server rdmactor, ms | cannot | %.0f | |", n.alone, g.rdmactor("rdmactor", n.alone)))
	}
	g.t.Logf("load of the host: %s before, %s after", load, hostLoad())
	return rows
}

func hostLoad() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// spread returns the median of the runs, with the least and the greatest value.
func spread(list []float64) string {
	if len(list) == 1 {
		return fmt.Sprintf("%.0f", list[0])
	}
	return fmt.Sprintf("%.0f (%.0f to %.0f)", median(list), slices.Min(list), slices.Max(list))
}
