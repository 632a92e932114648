package main

import (
	"context"
	"errors"
	"sync"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/rpc"
)

// A service whose calls cost processor time is offered more calls than it can handle. Its limit of
// calls in flight is also the limit of its queue.
const (
	callCost      = 50 * time.Microsecond
	callLimit     = 16 // in flight at the server, in total
	callsPerConn  = 8  // in flight on a connection
	overloadConns = 4
	belowLoad     = 0.9
	aboveLoad     = 2.0
)

// The metrics of the scenario.
const (
	sustainable  = "sustainable/s"
	belowP99     = "p99 us at 0.9x"
	aboveP99     = "p99 us at 2x"
	goodput      = "answered/s at 2x"
	refusedBelow = "refused at 0.9x"
	refusedShare = "refused at 2x"
	answerP50    = "answer p50 us at 2x"
	refusalP50   = "refusal p50 us"
	refusalP99   = "refusal p99 us"
)

func serveOverload(e measure.Entry) (measure.Service, error) {
	work := func(_ context.Context, q, reply []byte) ([]byte, error) {
		for begun := time.Now(); time.Since(begun) < callCost; { //nolint:revive // a call's cost
		}
		return append(reply, q...), nil
	}
	return listenRPC(e, work, rpc.ServerConfig{MaxCallsInAll: callLimit, MaxCalls: callsPerConn})
}

// overloadClient has the connections.
type overloadClient []*rpc.Client

func dialOverload(addr string, e measure.Entry) (measure.Client, error) {
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return measure.Client{}, err
	}
	var c overloadClient
	for range overloadConns {
		conn, err := connectClient(w, addr)
		if err != nil {
			return measure.Client{}, err
		}
		c = append(c, conn)
	}
	return measure.Client{Run: c.run, Close: func() error {
		for _, conn := range c {
			conn.Close()
		}
		return w.Close()
	}}, nil
}

// run measures the load that the service can sustain. Then it offers less and more than that, in
// turn.
func (c overloadClient) run(d time.Duration) (measure.Sample, error) {
	p := contest.NewPayload(contest.PayloadSize)
	closed, err := contest.Together(callLimit/2, contest.PayloadSize, d, false, c.callEcho)
	if err != nil {
		return measure.Sample{}, err
	}
	capacity := float64(closed.N) / closed.Seconds
	const turns = 2
	below, above := newOffer(), newOffer()
	for range turns {
		if err := errors.Join(c.offerCalls(p, capacity*belowLoad, d, below), c.offerCalls(p, capacity*aboveLoad, d, above)); err != nil {
			return measure.Sample{}, err
		}
	}
	b, a, r := measure.Percentiles(below.answers), measure.Percentiles(above.answers), measure.Percentiles(above.refusals)
	return measure.Sample{
		N: above.answerCount(), Seconds: above.took.Seconds(), Bytes: above.answerCount() * contest.PayloadSize,
		More: measure.Metrics{
			sustainable: capacity, belowP99: b[measure.P99], aboveP99: a[measure.P99], goodput: float64(above.answerCount()) / above.took.Seconds(),
			refusedBelow: below.refusedRatio(), refusedShare: above.refusedRatio(),
			answerP50: a[measure.P50], refusalP50: r[measure.P50], refusalP99: r[measure.P99],
		},
	}, nil
}

func (c overloadClient) callEcho(i int, p, room []byte) ([]byte, error) {
	return rpc.CallRaw(context.Background(), c[i%len(c)], echoMethod, p, room[:0])
}

// offered counts the outcomes of the calls of an offered load.
type offered struct {
	mu                sync.Mutex
	answers, refusals stats.Times
	err               error // of neither
	took              time.Duration
}

func newOffer() *offered {
	return &offered{answers: stats.NewTimes(2), refusals: stats.NewTimes(2)}
}

// offerCalls makes calls at a rate, each on a new goroutine, so that no call waits for earlier
// ones. Times are measured from the start of the call.
func (c overloadClient) offerCalls(p []byte, rate float64, d time.Duration, o *offered) error {
	var all sync.WaitGroup
	const pause = 100 * time.Microsecond
	begun := time.Now()
	made := 0
	for now := begun; now.Sub(begun) < d; now = time.Now() {
		for due := int(now.Sub(begun).Seconds() * rate); made < due; made++ {
			i := made
			all.Go(func() {
				room := make([]byte, len(p))
				called := time.Now()
				got, err := c.callEcho(i, p, room)
				if err == nil {
					err = contest.Echoed(got, p)
				}
				o.addResult(time.Since(called), err)
			})
		}
		time.Sleep(pause)
	}
	all.Wait()
	o.took += time.Since(begun)
	return o.err
}

func (o *offered) addResult(took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.answers.Add(took)
	case errors.Is(err, rpc.ErrOverloaded):
		o.refusals.Add(took)
	default:
		o.err = err
	}
}

func (o *offered) answerCount() int { return int(o.answers.TotalCount()) }

// refusedRatio returns the share of all calls that were refused.
func (o *offered) refusedRatio() float64 {
	n := o.refusals.TotalCount()
	return float64(n) / float64(max(n+o.answers.TotalCount(), 1))
}
