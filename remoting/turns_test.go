package remoting_test

import (
	"testing"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// A frame of very many records that this node refuses is not read in one turn of the loop. So the
// other nodes, whose connections that loop has, too, do not wait for all of it.
func TestReadsInTurns(t *testing.T) {
	const many = 200_000
	stop := frame.Record{Kind: frame.KindStop, Target: "hidden"}
	for name, r := range map[string]frame.Record{
		"stops":    stop,
		"messages": {Kind: frame.KindUser, Target: "hidden", Type: emptyType},
	} {
		t.Run(name, func(t *testing.T) {
			n, other := start(t, remoting.Config{Expose: remoting.Expose{Reach: []string{"echo"}}}), start(t, remoting.Config{})
			n.spawn("echo", echo, n.rt.OnLoop())
			allowed(t, other, n.pid("echo"))
			s := meet(t, n, "flood:1").introduce()
			var w frame.Writer
			for range many {
				if err := w.Append(&r); err != nil {
					t.Fatal(err)
				}
			}
			s.send(w.Bytes())
			refused := func() uint64 { return infoOf(n, s.name).Counts.Refused }
			eventually(t, "nothing is refused", func() bool { return refused() > 0 })
			allowed(t, other, n.pid("echo"))
			if got := refused(); got == many {
				t.Error("the other node's request was answered when all had been refused")
			}
			s.say(stop)
			eventually(t, "not all are refused", func() bool { return refused() == many+1 })
		})
	}
}
