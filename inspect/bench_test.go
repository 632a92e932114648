package inspect

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// BenchmarkNews is what a page costs with 10,000 connected identifiers: in each interval one
// inspection for all viewers, and for each viewer its page of them. The time of an operation is, at
// the default interval, the part of a processor that it takes.
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
		r.sys.Root.Send(r.rt.CreateID(owner, rdma.IDConfig{}), &rdma.Dial{Addr: addr.String()})
		<-established
	}
	b.Run("inspection", func(b *testing.B) {
		for b.Loop() {
			take(r.rt)
		}
	})
	s := take(r.rt)
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
				if _, err := json.Marshal(q.of(s)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
