package contest

import (
	"context"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/perf"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// newDevice returns the embedded device. It uses CRC only if the entry requests it, because plain
// TCP has only its checksum.
func newDevice(e measure.Entry) cmid.Driver {
	return iwarp.New(iwarp.Config{CRC: e.CRC})
}

// ownMemory is the contestant at the verbs level whose messages in flight each have separate
// memory. Otherwise all messages are sent from the same memory, as in perftest.
const ownMemory = "verbs-own"

func perfConfig(e measure.Entry) perf.Config {
	return perf.Config{Driver: newDevice(e), Wait: e.Wait, Timeout: 30 * time.Second, Complain: func(err error) { panic(err) }}
}

// serveVerbs starts the server of `rdmactor perf`.
func serveVerbs(e measure.Entry) (measure.Service, error) {
	s, err := perf.Listen(perfConfig(e), cmid.MustAddr(Loopback))
	if err != nil {
		return measure.Service{}, err
	}
	return measure.Service{Addr: s.Addr().String(), Close: func() error {
		_, err := s.Close()
		return err
	}}, nil
}

func dialVerbsEcho(addr string, e measure.Entry) (measure.Client, error) {
	return dialVerbs(addr, e, perf.Test{Op: perf.Send, Kind: perf.Latency, Size: PayloadSize, Depth: 1})
}

// dialVerbs opens the client of `rdmactor perf`. Each Run uses a new connection.
func dialVerbs(addr string, e measure.Entry, t perf.Test) (measure.Client, error) {
	cl, err := perf.Open(perfConfig(e))
	if err != nil {
		return measure.Client{}, err
	}
	plan := perf.Plan{Test: t, Peer: cmid.MustAddr(addr), OwnMemory: e.Contestant == ownMemory}
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		plan.Duration = d
		begun := time.Now()
		r, err := cl.Run(context.Background(), plan)
		s := measure.Sample{N: r.Count, Seconds: time.Since(begun).Seconds(), Bytes: r.Count * r.Size}
		if r.Rate != nil {
			s.Seconds = r.Rate.Seconds
		}
		if t := r.Times; t != nil {
			const halves = 2
			s.Times = measure.Metrics{measure.P50: halves * t.P50US, measure.P90: halves * t.P90US, measure.P99: halves * t.P99US}
		}
		return s, err
	}, Close: cl.Close}, nil
}
