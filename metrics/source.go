package metrics

import (
	"context"
	"sync"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

// Config selects what is read. Nil fields are left out.
type Config struct {
	Runtime *rdma.Runtime
	Node    *remoting.Node
	// Cluster returns the cluster as this member knows it. It is called at each reading, on a
	// separate goroutine.
	Cluster func() Cluster
	// Servers and Clients return those of package rpc whose calls are counted. They are called at
	// each reading, on a separate goroutine. The counts of one that is no longer returned stay in
	// the sums; it is read until its last call has ended.
	Servers func() []*rpc.Server
	Clients func() []*rpc.Client
	// Methods is the number of methods with a label: 64. The others are summed as "other". A label
	// is never withdrawn.
	Methods int
	// Peers is the number of the node's peers with a label: none. The others are summed as "other",
	// including those that the node has forgotten. Peers choose their names.
	Peers int
	// Listeners is the number of listeners with a label, their address: 64. The others are summed
	// as "other", including ended ones and those with the address of another.
	Listeners int
	// Within is the time limit of a reading: 2 s. Blocked loops take 100 ms of it.
	Within time.Duration
}

// Source reads the metrics. It may be used on any goroutine except a loop's, which would wait for
// itself.
type Source struct {
	cfg       Config
	peers     *names
	listeners *names
	servers   *side[*rpc.Server]
	clients   *side[*rpc.Client]
	calls     *part
	parts     []*part // including calls
}

// New makes a Source.
func New(cfg Config) *Source {
	if cfg.Listeners <= 0 {
		cfg.Listeners = 64
	}
	if cfg.Methods <= 0 {
		cfg.Methods = 64
	}
	if cfg.Within <= 0 {
		cfg.Within = 2 * time.Second
	}
	s := &Source{cfg: cfg, peers: newNames(cfg.Peers, labelAll), listeners: newNames(cfg.Listeners, labelOther)}
	if cfg.Peers > 0 {
		s.peers.rest = labelOther
	}
	methods := keptNames(cfg.Methods, labelOther)
	s.servers, s.clients = newSide("server", cfg.Servers, methods), newSide("client", cfg.Clients, methods)
	s.calls = &part{name: "calls", read: func() []Sample { return s.clients.readCalls(s.servers.readCalls(nil)) }}
	s.parts = []*part{{name: "loops", read: s.readLoops}, {name: "peers", read: s.readPeers}, s.calls}
	if cfg.Cluster != nil {
		s.parts = append(s.parts, &part{name: "cluster", read: s.readCluster})
	}
	return s
}

// perPart are the metrics of reading itself.
var perPart = func() (g group[*partInfo]) {
	g.addMetric(Definition{"read", "failures", Counter, None, []string{"part"}, "Readings that were not done in time, or have panicked."}, func(p *partInfo) float64 { return float64(p.failures) })
	g.addMetric(Definition{"read", "duration", Gauge, Seconds, []string{"part"}, "How long the last reading took, or the present one has until now, if that is longer."}, func(p *partInfo) float64 { return p.took.Seconds() })
	return g
}()

// Read reads all metrics, and waits at most until ctx is done or Config.Within has passed.
// Concurrent callers share the result, which must not be changed.
func (s *Source) Read(ctx context.Context) []Sample { return s.readParts(ctx, s.parts...) }

// ReadCalls reads only the metrics of calls. It asks no loop.
func (s *Source) ReadCalls(ctx context.Context) []Sample { return s.readParts(ctx, s.calls) }

func (s *Source) readParts(ctx context.Context, parts ...*part) []Sample {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Within)
	defer cancel()
	under := make([]*reading, len(parts))
	for i, p := range parts {
		under[i] = p.startReading()
	}
	var all []Sample
	for i, p := range parts {
		samples, info := p.awaitReading(ctx, under[i])
		all = append(all, samples...)
		all = perPart.appendSamples(all, &info, p.name)
	}
	return all
}

// part is a part of a reading that can fail alone. At most one goroutine reads it at a time, so one
// that never returns costs one goroutine.
type part struct {
	name string
	read func() []Sample

	mu    sync.Mutex
	under *reading // the reading under way; nil: none
	last  []Sample // result of the last reading
	info  partInfo
}

type partInfo struct {
	failures uint64
	took     time.Duration
}

// reading is one call of readParts, shared by all callers until it ends.
type reading struct {
	began time.Time
	done  chan struct{}
	late  bool // counted as a failure
}

func (p *part) startReading() *reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.under == nil {
		p.under = &reading{began: time.Now(), done: make(chan struct{})}
		go p.runReading(p.under)
	}
	return p.under
}

// runReading calls the part's read function. The program's code may panic, or end the goroutine.
func (p *part) runReading(r *reading) {
	finished := false
	var samples []Sample
	defer func() {
		_ = recover() // counted
		p.mu.Lock()
		defer p.mu.Unlock()
		p.under, p.info.took = nil, time.Since(r.began)
		if finished {
			p.last = samples
		} else if !r.late {
			p.info.failures++
		}
		close(r.done)
	}()
	samples = mergeSamples(p.read())
	finished = true
}

func (p *part) awaitReading(ctx context.Context, r *reading) ([]Sample, partInfo) {
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.under == r && !r.late {
		r.late = true
		p.info.failures++
	}
	info := p.info
	if p.under != nil {
		info.took = max(info.took, time.Since(p.under.began))
	}
	return p.last, info
}
