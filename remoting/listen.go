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
	n     *Node
	id    *actor.PID
	addr  string
	tries int // since it has listened
	began bool
}

// listenAgain is sent to the listener itself.
type listenAgain struct{}

// listen makes the listener, and waits until it listens.
func (n *Node) listen() error {
	began := make(chan error, 1)
	n.began = func(err error) {
		select {
		case began <- err:
		default:
		}
	}
	l := &listener{n: n, addr: n.cfg.Listen}
	owner, err := n.sys.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return l }, n.rt.OnLoop()), n.own+"/listener")
	if err != nil {
		return err
	}
	n.owner = owner
	err = <-began
	n.rt.Scheduler().Resume()
	if err != nil {
		n.stopListener()
	}
	return err
}

// stopListener stops the listener, and what it owns.
func (n *Node) stopListener() {
	n.sys.Root.Stop(n.owner)
	<-n.gone
	n.rt.Scheduler().Resume()
}

// Receive implements actor.Actor.
func (l *listener) Receive(ctx actor.Context) {
	n := l.n
	switch m := ctx.Message().(type) {
	case *actor.Started, *listenAgain:
		cfg := n.cfg.ID
		cfg.Route, cfg.Place = n.route, n.place
		l.id = n.rt.CreateID(ctx.Self(), cfg)
		ctx.Request(l.id, &rdma.Serve{Addr: l.addr})
	case *actor.Stopped:
		close(n.gone)
	case *rdma.Listening:
		if !l.began {
			l.began = true
			if strings.HasSuffix(l.addr, ":0") {
				l.addr = m.Local.String() // peers know the port
			}
			n.begin(m.Local)
			n.began(nil)
		}
		l.tries = 0
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Reject{}) // not a node's
	case *rdma.Closed:
		l.closed(ctx, m.Err)
	case rdma.Failure: // Closed follows
		n.began(m)
	}
}

// closed takes note that nobody can connect any more.
func (l *listener) closed(ctx actor.Context, err error) {
	n := l.n
	n.began(err)
	switch {
	case !l.began || !l.id.Equal(ctx.Sender()):
	case errors.Is(err, rdma.ErrShutdown):
		n.down.Store(true)
		n.close(&fall{err}) // the runtime is gone: nothing can be sent
	default:
		n.rt.Logger().Warn("remoting: the listener has ended, and another one is made", "local", l.addr, "err", err)
		pause := reconnect.Backoff{First: n.cfg.Backoff.First, Most: n.cfg.Backoff.Most}.WithDefaults().Longest(l.tries)
		l.tries++
		rdma.After(ctx, pause, &listenAgain{})
	}
}
