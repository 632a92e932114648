//go:build linux && rdma

package native

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/kernelrig"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// TestAgainstPerftest prints the results of perftest's ib_send_lat and ib_write_bw, and the same
// measurements of this project, in one boot. perftest has a process on each side, and both spin.
// Here both sides are on one loop, which needs no second processor.
func TestAgainstPerftest(t *testing.T) {
	if kernelrig.Env(t, "RDMA_KIND") == "siw" {
		t.Skip("siw's queue pairs are connected by the connection manager only")
	}
	const rounds, writes, length = "2000", 500, 64 << 10
	lat := perftest(t, "ib_send_lat", "-s", "64", "-n", rounds)
	bw := perftest(t, "ib_write_bw", "-s", strconv.Itoa(length), "-n", strconv.Itoa(writes))
	t.Logf("half a round trip of 64 bytes: ib_send_lat %s µs (median)", lat[4])
	t.Logf("Writes of 64 KiB: ib_write_bw %s MiB/s", bw[3])
	for name, p := range map[string]verbs.Provider{"uverbs": uverbs.Provider{}, "native": Provider{}} {
		x, turns := newPair(t, p), []time.Duration{}
		turns = append(turns, x.pingPong(1000)...)
		slices.Sort(turns)
		t.Logf("%s: half a round trip of 64 bytes %v, Writes of 64 KiB %.0f MiB/s", name, turns[len(turns)/2], x.bandwidth(writes, length))
	}
}

// perftest runs a program's server and client, and returns the columns of the result.
func perftest(t *testing.T, program string, flags ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	flags = append([]string{"-d", kernelrig.Env(t, "RDMA_DEVICE"), "-F"}, flags...)
	server := exec.CommandContext(ctx, program, flags...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Wait() }()
	var out []byte
	for range 50 { // until the server listens
		var err error
		if out, err = exec.CommandContext(ctx, program, append(flags, kernelrig.Env(t, "RDMA_ADDR"))...).CombinedOutput(); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) >= 5 && f[0] == flags[4] {
			return f
		}
	}
	cancel()
	t.Fatalf("%s has no result:\n%s", program, out)
	return nil
}

// bandwidth writes n times, with 16 Writes outstanding, and returns MiB/s.
func (x *pair) bandwidth(n, length int) float64 {
	x.Helper()
	near, err := x.dev.Alloc(length, verbs.LocalWrite)
	x.must(err)
	far, err := x.dev.Alloc(length, verbs.LocalWrite|verbs.RemoteWrite)
	x.must(err)
	begun := time.Now()
	posted := 0
	for x.written = 0; x.written < n; {
		for ; posted < n && posted-x.written < 16; posted++ {
			x.must(x.a.qp.PostSend(&verbs.SendWR{
				Op: verbs.Write, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: near, Length: uint32(length)}}, RemoteAddr: far.Addr, RKey: far.RKey,
			}))
		}
		x.must(x.loop.Turn())
	}
	took := time.Since(begun)
	x.must(x.dev.Free(near))
	x.must(x.dev.Free(far))
	return float64(n*length) / (1 << 20) / took.Seconds()
}
