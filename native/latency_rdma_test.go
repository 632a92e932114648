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
// takes more than twice as long: what the machine does besides makes finer limits meaningless.
func TestLatency(t *testing.T) {
	if kernelrig.Env(t, "RDMA_KIND") == "siw" {
		t.Skip("siw's queue pairs are connected by the connection manager only")
	}
	const rounds, batches = 500, 6
	sides := map[string]func(int) []time.Duration{"uverbs": pingPong(t, uverbs.Provider{}), "native": pingPong(t, Provider{})}
	took := map[string][]time.Duration{}
	for range batches {
		for _, name := range []string{"uverbs", "native"} {
			took[name] = append(took[name], sides[name](rounds)...)
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

// end is one of two queue pairs on one loop.
type end struct {
	cq  verbs.CQ
	qp  verbs.ProviderQP
	mr  *verbs.MR
	got int
	wc  [16]verbs.WC
}

// pingPong connects two queue pairs and returns a function that measures round trips.
func pingPong(t *testing.T, p verbs.Provider) func(rounds int) []time.Duration {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := eventloop.New(eventloop.Config{})
	must(err)
	d, err := p.Open(l, verbs.DeviceIdent{Name: kernelrig.Env(t, "RDMA_DEVICE")})
	must(err)
	t.Cleanup(func() { must(d.Close()); must(l.Shutdown(t.Context())) })
	newEnd := func() *end {
		e := &end{}
		e.cq, err = d.CreateCQ(64, e.poll)
		must(err)
		e.qp, err = d.CreateQP(verbs.RC, verbs.QPInitAttr{SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 16, MaxRecvWR: 16})
		must(err)
		e.mr, err = d.Alloc(4096, verbs.LocalWrite)
		must(err)
		return e
	}
	a, b := newEnd(), newEnd()
	must(kernelrig.Connect(t, d, a.qp, b.qp))
	recv := func(e *end) { must(e.qp.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: e.mr, Length: 64}})) }
	recv(a)
	recv(b)
	// go on sending until the other has it
	pass := func(from, to *end) {
		must(from.qp.PostSend(&verbs.SendWR{Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: from.mr, Offset: 64, Length: 64}}}))
		for want := to.got + 1; to.got < want; {
			must(l.Turn())
		}
		recv(to)
	}
	return func(rounds int) (took []time.Duration) {
		for range rounds {
			start := time.Now()
			pass(a, b)
			pass(b, a)
			took = append(took, time.Since(start)/2)
		}
		return took
	}
}

func (e *end) poll() {
	for n := e.cq.Poll(e.wc[:]); n > 0; n = e.cq.Poll(e.wc[:]) {
		for i := range e.wc[:n] {
			if e.wc[i].Op == verbs.Recv {
				e.got++
			}
		}
	}
}
