package timing

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

// actorServer is an actor that owns the listener and its connections.
type actorServer struct {
	*count
	*system
}

func listenActor(c Config, at cmid.Addr) (Server, error) {
	sys, err := openSystem(c, c.Driver)
	if err != nil {
		return nil, err
	}
	s := &actorServer{count: newCount(c), system: sys}
	started := make(chan error, 1)
	a := &accepting{count: s.count, rt: s.rt, at: at, started: started}
	s.sys.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }, s.rt.OnLoop()))
	if err := <-started; err != nil {
		_ = s.close(1) // the listener
		return nil, err
	}
	s.at = a.at
	return s, nil
}

// Close shuts the server down. Remaining connections are not an error, because their peers end
// them.
func (s *actorServer) Close() error { return s.close(len(s.rt.Inspect())) }

// accepting accepts every request. It runs on the loop.
type accepting struct {
	*count
	rt       *rdma.Runtime
	at       cmid.Addr // the address to listen on, then the local address
	listener *actor.PID
	started  chan error // receives the outcome of Listen; nil afterwards
}

// Receive handles the events of the identifiers. The Sender is the identifier.
func (a *accepting) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.listener = a.rt.CreateID(ctx.Self(), bare)
		ctx.Request(a.listener, &cmid.BindAddr{Addr: a.at})
	case *cmid.Bound:
		ctx.Request(a.listener, &cmid.Listen{}) // with the device's maximum backlog, as in cmtime
	case *cmid.Listening:
		a.at = m.Local
		a.reportListen(nil)
	case *cmid.ConnectRequest:
		a.countOpened()
		ctx.Respond(&cmid.Accept{})
	case *cmid.Established:
		a.countAccepted()
	case *cmid.Disconnected:
		if m.Err != nil {
			a.recordError(fmt.Errorf("disconnected: %w", m.Err))
		}
	case *cmid.Closed:
		if !a.handleListener(ctx, m.Err) {
			a.countClosed()
		}
	case cmid.Failure:
		if !a.handleListener(ctx, m) {
			a.recordError(m)
			ctx.Respond(&cmid.DestroyID{})
		}
	}
}

// handleListener handles the failure or end of the listener. It reports whether the event was the
// listener's.
func (a *accepting) handleListener(ctx actor.Context, err error) bool {
	if ctx.Sender() == nil || !ctx.Sender().Equal(a.listener) {
		return false
	}
	if err != nil && !errors.Is(err, rdma.ErrShutdown) {
		a.recordError(err)
	}
	a.reportListen(err)
	a.recordListenerLost()
	return true
}

// reportListen reports the outcome of Listen, once.
func (a *accepting) reportListen(err error) {
	if a.started != nil {
		a.started <- err
		a.started = nil
	}
}
