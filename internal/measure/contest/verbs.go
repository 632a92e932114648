package contest

import (
	"context"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/measure"
	"github.com/rdmactor/rdmactor/internal/perf"
	"github.com/rdmactor/rdmactor/iwarp"
)

// device is the embedded device: without CRC, as TCP has none of its own beyond its checksum, unless the entry says otherwise.
func device(e measure.Entry) cmid.Driver {
	return iwarp.New(func(c *iwarp.Config) { c.CRC = e.CRC })
}

// ownMemory is the verbs level with memory of its own for each message on its way. Otherwise all come from the same, as perftest has it.
const ownMemory = "verbs-own"

var latency = perf.Test{Op: perf.Send, Kind: perf.Latency, Size: PayloadSize, Depth: 1}

// verbsService is the server of `rdmactor perf`.
type verbsService struct{ *perf.Server }

func perfConfig(e measure.Entry) perf.Config {
	return perf.Config{Driver: device(e), Wait: e.Wait, Timeout: 30 * time.Second, Complain: func(err error) { panic(err) }}
}

func serveVerbs(e measure.Entry) (measure.Service, error) {
	s, err := perf.Listen(perfConfig(e), cmid.MustAddr(Loopback))
	return verbsService{s}, err
}

func (s verbsService) Addr() string { return s.Server.Addr().String() }

func (s verbsService) Close() error {
	_, err := s.Server.Close()
	return err
}

// verbsClient is the client of `rdmactor perf`: each Run is a connection of its own.
type verbsClient struct {
	*perf.Client
	test perf.Test
	peer cmid.Addr
	own  bool
}

func dialVerbs(addr string, e measure.Entry, t perf.Test) (measure.Client, error) {
	cl, err := perf.Open(perfConfig(e))
	return &verbsClient{cl, t, cmid.MustAddr(addr), e.Contestant == ownMemory}, err
}

func (c *verbsClient) Run(d time.Duration) (measure.Sample, error) {
	begun := time.Now()
	r, err := c.Client.Run(context.Background(), perf.Plan{Test: c.test, Peer: c.peer, Duration: d, OwnMemory: c.own})
	s := measure.Sample{N: r.Count, Seconds: time.Since(begun).Seconds(), Bytes: r.Count * r.Size}
	if r.Rate != nil {
		s.Seconds = r.Rate.Seconds
	}
	if t := r.Times; t != nil {
		const halves = 2
		s.Times = measure.Metrics{measure.P50: halves * t.P50US, measure.P90: halves * t.P90US, measure.P99: halves * t.P99US}
	}
	return s, err
}
