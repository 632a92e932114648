package pacluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"golang.org/x/sys/unix"
)

// healthPath is what members ask each other for.
const healthPath = "/_health"

// mostHealth is how long an answer may be, in bytes.
const mostHealth = 1 << 20

// health is the answer of a member. The names are those of Proto.Actor's provider.
type health struct {
	ID      string   `json:"id"`
	Host    string   `json:"address"`
	Port    int      `json:"port"`
	Kinds   []string `json:"kinds"`
	Cluster string   `json:"cluster_name"`
}

// host is where another member may be.
type host struct {
	addr   string
	asked  bool            // has an outcome
	member *cluster.Member // nil: none
}

// silenceParts is the number of parts in which the time of Silence is measured.
const silenceParts = 50

// asking asks one host, again and again. It belongs to one goroutine.
type asking struct {
	p      *automanaged
	h      *host
	cancel context.CancelFunc // of the request that is under way; nil: there is none
	failed bool               // the one before
	silent time.Duration      // how long requests have waited since the last answer
}

// answered is how a request has ended.
type answered struct {
	member *cluster.Member // nil: none of this cluster
	err    error
}

// askRepeatedly asks until the provider is shut down.
func (a *asking) askRepeatedly() {
	// A ticker drops ticks that are not received, so time in which this process stood still counts
	// as one part.
	every := max(a.p.cfg.Silence/silenceParts, time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	answers := make(chan answered, 1)
	for {
		select {
		case <-a.p.ctx.Done(): // a request ends with it
			return
		case <-next.C:
			a.startRequest(answers)
		case is := <-answers:
			if a.recordOutcome(is) {
				next.Reset(a.p.cfg.Refresh)
			} else { // its process may just have been killed
				next.Reset(every)
			}
		case <-tick.C:
			a.addSilence(every)
		}
	}
}

// startRequest starts a request.
func (a *asking) startRequest(answers chan<- answered) {
	ctx, cancel := context.WithCancel(a.p.ctx)
	a.cancel = cancel
	a.p.running.Go(func() {
		m, err := a.p.askHost(ctx, a.h.addr)
		answers <- answered{m, err}
	})
}

// recordOutcome records the outcome of a request, and reports whether there was one.
func (a *asking) recordOutcome(is answered) bool {
	a.cancel()
	a.cancel, a.failed = nil, is.err != nil
	switch {
	case is.err == nil:
		a.silent = 0
	case !errors.Is(is.err, unix.ECONNREFUSED): // else the port is closed
		return false
	}
	a.p.setMember(a.h, is.member)
	return true
}

// addSilence adds time to how long the host is silent, and gives it up after Silence.
func (a *asking) addSilence(d time.Duration) {
	if a.cancel == nil && !a.failed {
		return
	}
	if a.silent += d; a.silent < a.p.cfg.Silence {
		return
	}
	a.silent = 0
	a.p.setMember(a.h, nil)
	if a.cancel != nil { // the connection may be one to a machine that has gone
		a.cancel()
	}
}

// askHost asks a host once.
func (p *automanaged) askHost(ctx context.Context, addr string) (*cluster.Member, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+healthPath, nil)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("pacluster: automanaged: %s answers %s", addr, resp.Status)
	}
	var is health
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostHealth)).Decode(&is); err != nil {
		return nil, err
	}
	if is.Cluster != p.cluster {
		return nil, nil
	}
	if is.ID == "" || is.Port <= 0 || is.Port > 1<<16-1 {
		return nil, fmt.Errorf("pacluster: automanaged: %s answers what is no member: %+v", addr, is)
	}
	return &cluster.Member{Id: is.ID, Host: is.Host, Port: int32(is.Port), Kinds: is.Kinds}, nil
}
