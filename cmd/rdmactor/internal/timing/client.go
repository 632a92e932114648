package timing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
)

// Config is the configuration of a Client or a Server.
type Config struct {
	Driver cmid.Driver
	// Timeout is the longest time without any event while an answer is due. It is also the time
	// limit of each resolution and connection.
	Timeout time.Duration
	Log     *slog.Logger // of the actors
}

// system is a runtime with its ActorSystem.
type system struct {
	sys     *actor.ActorSystem
	rt      *rdma.Runtime
	timeout time.Duration
}

func openSystem(c Config, d cmid.Driver) (*system, error) {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return c.Log }))
	rt, err := rdma.Open(sys, rdma.Config{Device: d, Security: &rdma.Security{Mode: rdma.Insecure}, Limits: rdma.Limits{RequestRate: -1}, Timeouts: rdma.Timeouts{
		Address: c.Timeout, Route: c.Timeout, Connect: c.Timeout, Request: c.Timeout, Close: c.Timeout,
	}})
	if err != nil {
		sys.Shutdown()
		return nil, err
	}
	return &system{sys, rt, c.Timeout}, nil
}

// close shuts everything down. It returns an error if more than wanted identifiers are left.
func (s *system) close(wanted int) error {
	var left error
	if ids := s.rt.Inspect(); len(ids) > wanted {
		left = fmt.Errorf("%d identifiers are left, the last one %v since %v", len(ids), ids[len(ids)-1].State, ids[len(ids)-1].InState)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	err := s.rt.Shutdown(ctx)
	s.sys.Shutdown()
	return errors.Join(left, err)
}

// Client takes identifiers through the steps.
type Client struct {
	*system
	qps     qpTimes
	stopped bool
}

// OpenClient opens the device for a client's runs.
func OpenClient(c Config) (*Client, error) {
	cl := new(Client)
	var err error
	cl.system, err = openSystem(c, timedDriver{c.Driver, &cl.qps})
	return cl, err
}

// Close frees everything. Its error reports resources that the runs have left.
func (cl *Client) Close() error {
	if cl.stopped {
		return cl.close(len(cl.rt.Inspect())) // an interrupted run may leave some
	}
	return cl.close(0)
}

// Run makes one run and waits for its end. The Run counts identifiers that failed. An error means
// that the run is incomplete. Run returns early when ctx is done.
func (cl *Client) Run(ctx context.Context, p Plan) (Run, error) {
	ended := make(chan struct{})
	l := &owner{rt: cl.rt, index: make(map[string]int, p.IDs), pids: make([]*actor.PID, p.IDs)}
	l.b = newBench(p, l, cl.timeout, func() { close(ended) })
	cl.qps = nil // the loop does not read it before the actor below is spawned
	pid := cl.sys.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return l }, cl.rt.OnLoop()))
	defer func() { _ = cl.sys.Root.StopFuture(pid).Wait() }()
	select {
	case <-ended:
		r := l.b.result()
		if p.Connect {
			r.insertRow(createQP, connect, cl.qps)
		}
		return r, nil
	case <-ctx.Done():
		cl.stopped = true
		return Run{}, cli.ErrInterrupted
	}
}

// bare is the configuration of identifiers that send nothing, so that no bytes of this project's
// protocol are on the wire. If a device needs receives posted beforehand, it gets the smallest
// number of them.
var bare = rdma.IDConfig{Raw: true, MaxMessage: 1, Credits: 1}

// owner is the actor that owns the identifiers of one run. It runs on their loop.
type owner struct {
	rt    *rdma.Runtime
	b     *bench
	ctx   actor.Context
	pids  []*actor.PID
	index map[string]int // keyed by PID
}

// watch is a message that owner sends itself, to check whether there was an answer since the
// last watch.
type watch struct{ answers int }

// Receive handles the events of the identifiers.
func (l *owner) Receive(ctx actor.Context) {
	l.ctx = ctx
	switch m := ctx.Message().(type) {
	case *actor.Started:
		rdma.After(ctx, l.b.timeout, &watch{-1})
		l.b.advanceSteps()
	case *watch:
		if l.b.over {
			return
		}
		if m.answers == l.b.answers {
			l.b.failPending()
		}
		rdma.After(ctx, l.b.timeout, &watch{l.b.answers})
	case *cmid.Done: // of createID's Handover
		if i, ok := l.senderIndex(); ok {
			l.b.recordFinished(i)
			l.b.advanceSteps()
		}
	case cmid.Event:
		if i, ok := l.senderIndex(); ok {
			l.b.handleEvent(i, m)
		}
	}
}

func (l *owner) senderIndex() (i int, ok bool) {
	if l.ctx.Sender() == nil {
		return 0, false
	}
	i, ok = l.index[l.ctx.Sender().Id]
	return i, ok
}

// createID sends the new identifier a command that costs its device nothing. The answer shows that
// the identifier exists.
func (l *owner) createID(i int) {
	pid := l.rt.CreateID(l.ctx.Self(), bare)
	l.pids[i], l.index[pid.Id] = pid, i
	l.ctx.Request(pid, &rdma.Handover{To: l.ctx.Self()})
}

func (l *owner) issueCommand(i int, cmd cmid.Command) { l.ctx.Request(l.pids[i], cmd) }
