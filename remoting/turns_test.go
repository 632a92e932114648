package remoting_test

import (
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// A frame of very many records that this node refuses is not read in one turn of the loop. So the
// other nodes, whose connections that loop has, too, do not wait for all of it.
func TestReadsInTurns(t *testing.T) {
	const many = 60_000
	for name, r := range map[string]frame.Record{
		"stops":        {Kind: frame.KindStop, Target: "hidden"},
		"messages":     {Kind: frame.KindUser, Target: "hidden", Type: emptyType},
		"late answers": {Kind: frame.KindUser, Target: "future$1", Type: emptyType},
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, remoting.Config{Expose: remoting.Expose{Reach: []string{"echo"}}})
			s := meet(t, n, "flood:1").introduce()
			read := func() int {
				c := infoOf(n, s.name).Counts
				return int(max(c.Refused, c.Late))
			}
			before, worst := 0, 0
			var over atomic.Bool
			observer := n.spawn("observer", func(ctx actor.Context) { // runs in each turn
				now := read()
				before, worst = now, max(worst, now-before)
				if now == many {
					over.Store(true)
				} else if _, stopping := ctx.Message().(*actor.Stopping); !stopping {
					ctx.Send(ctx.Self(), text("again"))
				}
			}, n.rt.OnLoop())
			var w frame.Writer
			for range many {
				if err := w.Append(&r); err != nil {
					t.Fatal(err)
				}
			}
			s.send(w.Bytes())
			eventually(t, "not all are read", over.Load)
			n.sys.Root.StopFuture(observer).Wait()
			if worst > many/10 {
				t.Errorf("%d records were read in one turn", worst)
			}
		})
	}
}
