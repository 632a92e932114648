package rdmanet

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/optional"
)

// Dialer dials streams over a runtime's connections. Any goroutine except a loop's may call its
// methods.
type Dialer struct {
	rt  *rdma.Runtime
	cfg Config
}

// NewDialer makes a Dialer.
func NewDialer(rt *rdma.Runtime, cfg ...Config) *Dialer {
	return &Dialer{rt: rt, cfg: optional.Value(cfg).withDefaults()}
}

// Dial connects to a Listener at addr, "host:port", and returns a *Conn. If ctx ends before it is
// connected, the attempt is given up. The addresses of a name share the time until its deadline.
// The error is a *net.OpError; errors.Is finds the errno in it, such as ECONNREFUSED if there is no
// listener, or a program with another protocol.
func Dial(ctx context.Context, rt *rdma.Runtime, addr string, cfg ...Config) (net.Conn, error) {
	return NewDialer(rt, cfg...).Dial(ctx, addr)
}

// DialContext is Dial with the signature of http.Transport's field. The network, "tcp" there, is
// ignored.
func (d *Dialer) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	return d.Dial(ctx, addr)
}

// Dial connects to addr as the function Dial does. It has the signature that
// grpc.WithContextDialer takes.
func (d *Dialer) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := d.dialAddr(ctx, addr)
	if err != nil {
		op := setupError("dial", addr, err)
		if !d.cfg.Local.IsZero() {
			op.Source = netAddr(d.cfg.Local)
		}
		return nil, op
	}
	return c, nil
}

func (d *Dialer) dialAddr(ctx context.Context, addr string) (*Conn, error) {
	if ctx.Err() != nil {
		return nil, withContextErr(ctx, context.Cause(ctx))
	}
	sys := d.rt.System()
	c := newConn(d.rt, nil, &d.cfg)
	pid := sys.Root.SpawnPrefix(actor.PropsFromProducer(func() actor.Actor { return &owner{conn: c} }, d.rt.OnLoop()), "rdmanet")
	c.wr.id = d.rt.CreateID(pid, rdma.IDConfig{MaxMessage: d.cfg.MaxMessage, Credits: d.cfg.Credits, Stream: true})
	ev, err := rdma.Ask[*rdma.Established](ctx, d.rt, c.wr.id, &rdma.Dial{Addr: addr, Src: d.cfg.Local, PrivateData: greetingData()})
	if err != nil {
		if _, ok := errors.AsType[rdma.Failure](err); ok { // Closed follows and stops the owner
			return nil, err
		}
		sys.Root.Stop(pid) // and with it the identifier
		return nil, withContextErr(ctx, err)
	}
	c.setEstablished(ev)
	if wrong := checkGreeting(ev.PrivateData); wrong != "" {
		c.closeUnused()
		return nil, violationError("the peer has accepted, but does not say that it speaks " + tag)
	}
	return c, nil
}

// withContextErr returns err. If ctx has ended, it also wraps ctx's error.
func withContextErr(ctx context.Context, err error) error {
	if over := ctx.Err(); over != nil && !errors.Is(err, over) {
		return fmt.Errorf("%w: %w", over, err)
	}
	return err
}
