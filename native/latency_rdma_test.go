//go:build linux && rdma

package native

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/kernelrig"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// TestLatency measures half a round trip of 64 bytes between two queue pairs of one loop, with
// package uverbs and through libibverbs in turn, and prints the medians. It fails if libibverbs
// takes more than twice as long: the machine's other work makes finer limits meaningless.
func TestLatency(t *testing.T) {
	if kernelrig.Env(t, "RDMA_KIND") == "siw" {
		t.Skip("siw's queue pairs are connected by the connection manager only")
	}
	const rounds, batches = 500, 6
	sides := map[string]*pair{"uverbs": newPair(t, uverbs.Provider{}), "native": newPair(t, Provider{})}
	took := map[string][]time.Duration{}
	for range batches {
		for _, name := range []string{"uverbs", "native"} {
			took[name] = append(took[name], sides[name].pingPong(rounds)...)
		}
	}
	median := func(name string) time.Duration {
		slices.Sort(took[name])
		return took[name][len(took[name])/2]
	}
	u, n := median("uverbs"), median("native")
	t.Logf("half a round trip of 64 bytes: uverbs %v, native %v: %.2f", u, n, float64(n)/float64(u))
	if n > 2*u {
		t.Errorf("native takes %v, uverbs %v", n, u)
	}
}

// pair is two queue pairs on one loop, with one completion queue, as for the connections of a loop.
type pair struct {
	testing.TB
	loop  *eventloop.Loop
	dev   verbs.ProviderDevice
	a     *side
	cq    verbs.CQ
	peer  map[verbs.QP]*side // the peer of a queue pair
	wc    [16]verbs.WC
	begun time.Time
	took  []time.Duration
	left  int // remaining answers

	written int // completed Writes
}

type side struct {
	qp verbs.ProviderQP
	mr *verbs.MR
}

// newPair connects two queue pairs.
func newPair(t *testing.T, p verbs.Provider) *pair {
	t.Helper()
	x := &pair{TB: t, peer: map[verbs.QP]*side{}}
	var err error
	x.loop, err = eventloop.New()
	x.must(err)
	x.dev, err = p.Open(x.loop, verbs.DeviceIdent{Name: kernelrig.Env(t, "RDMA_DEVICE")})
	x.must(err)
	t.Cleanup(func() {
		x.must(x.loop.Turn()) // finishes the work of the last message
		x.must(x.dev.Close())
		x.must(x.loop.Shutdown(t.Context()))
	})
	x.cq, err = x.dev.CreateCQ(64, x.poll)
	x.must(err)
	a, b := x.newSide(), x.newSide()
	x.must(kernelrig.Connect(t, x.dev, a.qp, b.qp))
	x.a, x.peer[a.qp], x.peer[b.qp] = a, a, b
	x.receive(a)
	x.receive(b)
	return x
}

// pingPong returns half of each round trip.
func (x *pair) pingPong(rounds int) []time.Duration {
	x.took, x.left = nil, 2*rounds
	x.send(x.a)
	for x.left > 0 {
		x.must(x.loop.Turn())
	}
	return x.took
}

func (x *pair) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *pair) newSide() *side {
	qp, err := x.dev.CreateQP(verbs.RC, verbs.QPInitAttr{SendCQ: x.cq, RecvCQ: x.cq, MaxSendWR: 32, MaxRecvWR: 16})
	x.must(err)
	mr, err := x.dev.Alloc(4096, verbs.LocalWrite)
	x.must(err)
	return &side{qp, mr}
}

func (x *pair) receive(s *side) {
	x.must(s.qp.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: s.mr, Length: 64}}))
}

func (x *pair) send(s *side) {
	x.begun = time.Now()
	x.must(s.qp.PostSend(&verbs.SendWR{Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: s.mr, Offset: 64, Length: 64}}}))
}

// poll answers each message in the turn in which it arrives, as an actor does.
func (x *pair) poll() {
	for n := x.cq.Poll(x.wc[:]); n > 0; n = x.cq.Poll(x.wc[:]) {
		for i := range x.wc[:n] {
			switch wc := &x.wc[i]; {
			case wc.Status != verbs.StatusSuccess:
				continue
			case wc.Op == verbs.Write:
				x.written++
				continue
			case wc.Op != verbs.Recv:
				continue
			}
			x.took = append(x.took, time.Since(x.begun))
			s := x.peer[x.wc[i].QP]
			x.receive(s)
			if x.left--; x.left > 0 {
				x.send(s)
			}
		}
	}
}
