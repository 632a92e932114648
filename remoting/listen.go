package remoting

import (
	"errors"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// listener owns what listens for peers. When that ends, as with its device, it listens again.
type listener struct {
	host    *host
	addr    string
	route   func(*rdma.ConnectRequest) (owner *actor.PID, reject *rdma.Reject)
	place   func(hint uint32) *actor.PID
	listens func(at rdma.Addr) // called once, before the first request
	lost    func(err error)    // called when the runtime is gone
	gone    chan struct{}      // closed when the listener has stopped

	pid   *actor.PID
	id    *actor.PID
	tries int         // since it has listened
	heard bool        // it has listened
	began func(error) // reports how listening has begun; the first call counts
}

// listenAgain is sent to the listener itself.
type listenAgain struct{}

// listen waits until it listens.
func (l *listener) listen() error {
	began := make(chan error, 1)
	l.began = func(err error) {
		select {
		case began <- err:
		default:
		}
	}
	h := l.host
	pid, err := h.sys.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return l }, h.rt.OnLoop()), h.own+"/listener")
	if err != nil {
		return err
	}
	l.pid = pid
	err = <-began
	h.rt.Scheduler().Resume()
	if err != nil {
		l.stop()
	}
	return err
}

// stop stops the listener, and what it owns.
func (l *listener) stop() {
	l.host.sys.Root.Stop(l.pid)
	<-l.gone
	l.host.rt.Scheduler().Resume()
}

// Receive implements actor.Actor.
func (l *listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started, *listenAgain:
		cfg := l.host.cfg.ID
		cfg.Route, cfg.Place = l.route, l.place
		l.id = l.host.rt.CreateID(ctx.Self(), cfg)
		ctx.Request(l.id, &rdma.Serve{Addr: l.addr})
	case *actor.Stopped:
		close(l.gone)
	case *rdma.Listening:
		if !l.heard {
			l.heard = true
			if strings.HasSuffix(l.addr, ":0") {
				l.addr = m.Local.String() // peers know the port
			}
			l.listens(m.Local)
			l.began(nil)
		}
		l.tries = 0
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Reject{}) // not a node's
	case *rdma.Closed:
		l.closed(ctx, m.Err)
	case rdma.Failure: // Closed follows
		l.began(m)
	}
}

// closed takes note that nobody can connect any more.
func (l *listener) closed(ctx actor.Context, err error) {
	h := l.host
	l.began(err)
	switch {
	case !l.heard || !l.id.Equal(ctx.Sender()):
	case errors.Is(err, rdma.ErrShutdown):
		l.lost(err)
	default:
		h.rt.Logger().Warn("remoting: the listener has ended, and another one is made", "local", l.addr, "err", err)
		pause := reconnect.Backoff{First: h.cfg.Backoff.First, Most: h.cfg.Backoff.Most}.WithDefaults().Longest(l.tries)
		l.tries++
		rdma.After(ctx, pause, &listenAgain{})
	}
}
