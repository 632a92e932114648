//go:build chromium

package inspect

import (
	"bufio"
	"flag"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/chromium"
)

var (
	connections = flag.Int("connections", 10_000, "of the program whose page is looked at")
	rate        = flag.Int("rate", 100_000, "messages that it receives in a second")
	rounds      = flag.Int("rounds", 5, "with the page open, and without")
	window      = flag.Duration("window", 10*time.Second, "of each measurement")
)

// BenchmarkPageOpen measures the cost of the open page to a program under load: its processor time
// with Chromium at the page, less that without, in turns; the time from when the program sends news
// to when they are painted; and the memory of the page. The peers are another process. If other
// programs keep it from receiving all messages, the processor time is meaningless.
func BenchmarkPageOpen(b *testing.B) {
	r := newRig(b, Config{}, rdma.Config{})
	r.besieged()
	look := browser{chromium.Look(b, "about:blank", 1180, 800)}
	var with, without []sample
	for b.Loop() {
		for range *rounds {
			look.Must(look.Open("about:blank"))
			without = append(without, r.measure(look, false))
			look.Must(look.Open(r.url))
			look.Want(`document.querySelectorAll("main tbody tr").length === 50 && document.body.dataset.painted`)
			with = append(with, r.measure(look, true))
		}
	}
	var costs, paints []float64
	for i := range with {
		b.Logf("without: %v; with: %v", without[i], with[i])
		costs = append(costs, 100*(with[i].busy-without[i].busy))
		paints = append(paints, with[i].paints...)
	}
	slices.Sort(costs)
	slices.Sort(paints)
	last := len(with) - 1
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(costs[len(costs)/2], "%-of-a-core")
	b.ReportMetric(without[last].rate, "messages/s-without")
	b.ReportMetric(with[last].rate, "messages/s-with")
	b.ReportMetric(with[last].heap-without[last].heap, "heap-MiB")
	b.ReportMetric(with[last].resident-with[0].resident, "resident-MiB-more")
	if len(paints) > 0 {
		b.ReportMetric(paints[len(paints)/2], "paint-ms")
		b.ReportMetric(paints[len(paints)*95/100], "paint-p95-ms")
		b.ReportMetric(paints[len(paints)-1], "paint-max-ms")
	}
}

// sample is one measurement.
type sample struct {
	busy           float64 // of a processor
	rate           float64 // messages in a second
	heap, resident float64 // MiB
	paints         []float64
}

// besieged makes many peers connect to r, and send.
func (r *rig) besieged() {
	r.Helper()
	sink := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
			ctx.Respond(&rdma.Accept{})
		}
	}, r.rt.OnLoop()))
	on, err := rdma.Ask[*rdma.Listening](r.Context(), r.rt, r.rt.CreateID(sink), &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		r.Fatal(err)
	}
	peers := exec.Command(os.Args[0])
	peers.Env = append(os.Environ(), crowdOf+"="+on.Local.String(), crowdSize+"="+strconv.Itoa(*connections), crowdRate+"="+strconv.Itoa(*rate))
	peers.Stderr = os.Stderr
	in, err1 := peers.StdinPipe()
	out, err2 := peers.StdoutPipe()
	if err := peers.Start(); err != nil || err1 != nil || err2 != nil {
		r.Fatal(err, err1, err2)
	}
	r.Cleanup(func() {
		_ = in.Close()
		if err := peers.Wait(); err != nil {
			r.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "connected\n" {
		r.Fatalf("the peers say %q, %v", line, err)
	}
}

// measure takes a sample while the program works.
func (r *rig) measure(b browser, page bool) (m sample) {
	b.Helper()
	time.Sleep(2 * time.Second) // the work of opening the page ends
	b.Must(b.Eval(`(window.paints = [], new MutationObserver(() => paints.push(Number(document.body.dataset.sentMilliseconds)))
		.observe(document.body, { attributes: true, attributeFilter: ["data-painted"] }))`, nil))
	began, busy, received := time.Now(), processorTime(b), r.received()
	time.Sleep(*window)
	took := time.Since(began).Seconds()
	m.busy, m.rate = (processorTime(b)-busy).Seconds()/took, float64(r.received()-received)/took
	if page {
		b.Must(b.Eval(`paints`, &m.paints))
	}
	m.resident = float64(resident(b)) / 1024
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	m.heap = float64(mem.HeapAlloc) / (1 << 20)
	return m
}

// received returns the number of messages received.
func (r *rig) received() (n uint64) {
	for _, l := range r.rt.Loops() {
		n += l.Traffic.Received
	}
	return n
}

// resident returns this process's memory, in KiB.
func resident(tb testing.TB) int {
	tb.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(line)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
