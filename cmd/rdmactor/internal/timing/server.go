package timing

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

// Served counts a server's connections.
type Served struct {
	Accepted int   // established
	Errors   int   // failed connections
	First    error // why the first one failed
}

// Server accepts every connection, and waits for its end. An actor owns the listener and the
// connections.
type Server struct {
	*system
	at       cmid.Addr // the address to listen on, then the local address
	listener *actor.PID
	started  chan error    // receives the outcome of Listen; nil afterwards
	gone     chan struct{} // closed when the listener has failed

	mu     sync.Mutex
	served Served
	open   int
}

// Listen opens the device and listens at the address at.
func Listen(c Config, at cmid.Addr) (*Server, error) {
	sys, err := openSystem(c, c.Driver)
	if err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	s := &Server{system: sys, at: at, started: started, gone: make(chan struct{})}
	s.sys.Root.Spawn(actor.PropsFromFunc(s.receive, s.rt.OnLoop()))
	if err := <-started; err != nil {
		_ = s.close(1) // the listener
		return nil, err
	}
	return s, nil
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() cmid.Addr { return s.at }

// Failed returns a channel that is closed when the listener has failed.
func (s *Server) Failed() <-chan struct{} { return s.gone }

// Served returns the counts of connections so far.
func (s *Server) Served() Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// Idle waits until every connection has ended, but no longer than Config.Timeout. It returns how
// many are left. The ends of connections arrive a moment after the peers have ended them.
func (s *Server) Idle() (left int) {
	for end := time.Now().Add(s.timeout); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		open := s.open
		s.mu.Unlock()
		if open == 0 || time.Now().After(end) {
			return open
		}
	}
}

// Close closes the listener and every connection. Remaining connections are not an error, because
// their peers end them. Afterwards Served no longer changes.
func (s *Server) Close() error { return s.close(len(s.rt.Inspect())) }

// receive handles the events of the identifiers, on the loop. The Sender is the identifier.
func (s *Server) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.listener = s.rt.CreateID(ctx.Self(), bare)
		ctx.Request(s.listener, &cmid.BindAddr{Addr: s.at})
	case *cmid.Bound:
		ctx.Request(s.listener, &cmid.Listen{}) // the device's maximum backlog, as in cmtime
	case *cmid.Listening:
		s.at = m.Local
		s.reportListen(nil)
	case *cmid.ConnectRequest:
		s.addCounts(1, 0)
		ctx.Respond(&cmid.Accept{})
	case *cmid.Established:
		s.addCounts(0, 1)
	case *cmid.Disconnected:
		if m.Err != nil {
			s.recordError(fmt.Errorf("disconnected: %w", m.Err))
		}
	case *cmid.Closed:
		if !s.handleListener(ctx, m.Err) {
			s.addCounts(-1, 0)
		}
	case cmid.Failure:
		if !s.handleListener(ctx, m) {
			s.recordError(m)
			ctx.Respond(&cmid.DestroyID{})
		}
	}
}

// handleListener handles the failure or end of the listener. It reports whether the event was the
// listener's.
func (s *Server) handleListener(ctx actor.Context, err error) bool {
	if ctx.Sender() == nil || !ctx.Sender().Equal(s.listener) {
		return false
	}
	if err != nil && !errors.Is(err, rdma.ErrShutdown) {
		s.recordError(err)
	}
	s.reportListen(err)
	select {
	case <-s.gone: // its end follows its failure
	default:
		close(s.gone)
	}
	return true
}

// reportListen reports the outcome of Listen, once.
func (s *Server) reportListen(err error) {
	if s.started != nil {
		s.started <- err
		s.started = nil
	}
}

func (s *Server) addCounts(open, accepted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += open
	s.served.Accepted += accepted
}

func (s *Server) recordError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served.Errors++
	if s.served.First == nil {
		s.served.First = err
	}
}
