package inspect

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// BenchmarkNews measures the cost of a page with 10,000 connected identifiers: in each interval one
// inspection for all viewers, and for each viewer its page of them. At the default interval, the
// time of an operation is the part of a processor that it takes; cpu-ns/op is without the time of
// other programs, and turn-ns is the longest recent turn.
func BenchmarkNews(b *testing.B) {
	r := newRig(b, Config{}, rdma.Config{Loops: make([]eventloop.Config, 2)})
	addr := r.echo()
	established := make(chan struct{})
	owner := r.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.Established); ok {
			established <- struct{}{}
		}
	}, r.rt.OffLoop()))
	for range 5000 {
		r.sys.Root.Send(r.rt.CreateID(owner), &rdma.Dial{Addr: addr.String()})
		<-established
	}
	b.Run("inspection", func(b *testing.B) {
		before := processorTime(b)
		for b.Loop() {
			takeSnapshot(r.rt)
		}
		b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		longest := time.Duration(0)
		for _, l := range r.rt.Loops() {
			longest = max(longest, l.RecentTurn)
		}
		b.ReportMetric(float64(longest.Nanoseconds()), "turn-ns")
	})
	b.Run("loops", func(b *testing.B) {
		for b.Loop() {
			r.rt.Loops()
		}
	})
	s := takeSnapshot(r.rt)
	for name, asked := range map[string]string{"first-page": "", "filtered-and-sorted": "q=127.0.0.1&sort=peer&order=desc&size=500"} {
		v, err := url.ParseQuery(asked)
		if err != nil {
			b.Fatal(err)
		}
		q, err := parseQuery(v)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := json.Marshal(q.selectPage(s)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// processorTime returns the processor time that this process has used.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
