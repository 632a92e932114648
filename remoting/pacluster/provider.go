package pacluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// firstView is how long the first answers may take. By then a joining member knows the others, so
// that it does not begin with all grains.
const firstView = 500 * time.Millisecond

// automanaged is the provider that Automanaged makes.
type automanaged struct {
	cfg     Automanaged
	client  *http.Client
	server  *http.Server    // nil: requests are not answered
	ctx     context.Context // ends with stop
	stop    context.CancelFunc
	running sync.WaitGroup
	changed chan struct{}

	// set when it starts
	cluster string          // the name
	self    *cluster.Member // nil: it is a client
	log     *slog.Logger
	update  func(cluster.Members)

	mu    sync.Mutex
	hosts []*host
}

func newAutomanaged(cfg Automanaged, others []string) *automanaged {
	p := &automanaged{cfg: cfg, changed: make(chan struct{}, 1)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.client = &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1, MaxResponseHeaderBytes: 4 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, addr := range others {
		p.hosts = append(p.hosts, &host{addr: addr})
	}
	return p
}

// StartMember implements cluster.ClusterProvider.
func (p *automanaged) StartMember(c *cluster.Cluster) error {
	name, port, err := c.ActorSystem.GetHostPort()
	if err != nil {
		return err
	}
	p.self = &cluster.Member{Id: c.ActorSystem.ID, Host: name, Port: int32(port), Kinds: c.GetClusterKinds()}
	body, err := json.Marshal(&health{p.self.Id, name, port, p.self.Kinds, c.Config.Name})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", p.cfg.Listen)
	if err != nil {
		return err
	}
	p.log = c.Logger()
	p.serveHealth(l, body)
	return p.StartClient(c)
}

// serveHealth answers the others.
func (p *automanaged) serveHealth(l net.Listener, body []byte) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client sees that it failed
	})
	p.server = &http.Server{
		Handler: mux, MaxHeaderBytes: 4 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		ReadHeaderTimeout: p.cfg.Silence, WriteTimeout: p.cfg.Silence, IdleTimeout: p.cfg.Refresh + time.Minute,
	}
	p.running.Go(func() {
		if err := p.server.Serve(l); p.ctx.Err() == nil {
			p.log.Error("pacluster: automanaged: members are not answered any more", "err", err)
		}
	})
}

// StartClient implements cluster.ClusterProvider.
func (p *automanaged) StartClient(c *cluster.Cluster) error {
	p.cluster, p.log, p.update = c.Config.Name, c.Logger(), c.MemberList.UpdateClusterTopology
	p.startAsking()
	return nil
}

// startAsking asks the others.
func (p *automanaged) startAsking() {
	for _, h := range p.hosts {
		p.running.Go((&asking{p: p, h: h}).askRepeatedly)
	}
	go p.publishMembers() // Shutdown does not wait for it, because its callbacks may call Shutdown
}

// Shutdown implements cluster.ClusterProvider. The others find the closed port immediately.
func (p *automanaged) Shutdown(bool) error {
	p.stop()
	var err error
	if p.server != nil {
		err = p.server.Close()
	}
	p.running.Wait()
	p.client.CloseIdleConnections()
	return err
}

// setMember records the member at a host.
func (p *automanaged) setMember(h *host, m *cluster.Member) {
	p.mu.Lock()
	h.asked, h.member = true, m
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// knownMembers returns all members, each once, and whether each host has been asked.
func (p *automanaged) knownMembers() (all cluster.Members, asked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked = true
	if p.self != nil {
		all = append(all, p.self)
	}
	for _, h := range p.hosts {
		asked = asked && h.asked
		m := h.member
		if m != nil && !slices.ContainsFunc(all, func(o *cluster.Member) bool { return o.Id == m.Id }) {
			all = append(all, m)
		}
	}
	return all, asked
}

// publishMembers passes the members to the cluster: when something has changed, and each Refresh,
// because the cluster may have blocked one in between. It is one goroutine, because an older view
// that arrives last would block a member forever.
func (p *automanaged) publishMembers() {
	begun := time.Now()
	tick := time.NewTicker(p.cfg.Refresh)
	defer tick.Stop()
	first := time.After(firstView)
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.changed:
		case <-tick.C:
		case <-first:
		}
		if all, asked := p.knownMembers(); p.ctx.Err() == nil && (asked || time.Since(begun) >= firstView) {
			p.update(all)
		}
	}
}
