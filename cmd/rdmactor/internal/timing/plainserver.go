package timing

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/endpoint"
)

// plainServer serves with the plain calls, on a separate goroutine.
type plainServer struct {
	*count
	ch       *endpoint.Channel
	queues   queues
	listener *cmid.ID
	ended    chan error
}

func listenPlain(c Config, at cmid.Addr) (Server, error) {
	ch, err := endpoint.Open(c.Driver)
	if err != nil {
		return nil, err
	}
	s := &plainServer{count: newCount(c), ch: ch, queues: make(queues), ended: make(chan error, 1)}
	s.listener, err = endpoint.Listen(ch.Channel, cmid.PortSpaceTCP, at, 0) // backlog as in cmtime
	if err != nil {
		return nil, errors.Join(err, ch.Close())
	}
	s.at = s.listener.LocalAddr()
	go func() {
		err := serve(ch, c.Timeout, s.handle, func() bool { return false }, func() {})
		if errors.Is(err, cli.ErrInterrupted) {
			err = nil
		}
		s.ended <- errors.Join(err, s.free())
	}()
	return s, nil
}

func (s *plainServer) Close() error {
	s.ch.Stop()
	return <-s.ended
}

// free frees everything.
func (s *plainServer) free() error {
	s.listener.Do(&cmid.DestroyID{}, nil)
	// The channel comes first, because queue pairs use the completion queues until it is closed.
	return errors.Join(s.ch.Close(), s.queues.close())
}

func (s *plainServer) handle(id *cmid.ID, ev cmid.Event) {
	switch e := ev.(type) {
	case *cmid.ConnectRequest:
		s.begun()
		if err := s.accept(id); err != nil {
			s.failed(fmt.Errorf("%v: %w", e.Peer, err))
			s.destroy(id)
		}
	case *cmid.Established:
		s.accepted()
	case *cmid.Disconnected:
		if e.Err != nil {
			s.failed(fmt.Errorf("%v: %w", id.PeerAddr(), e.Err))
		}
		id.Do(&cmid.Disconnect{}, nil) // rdma_get_cm_event(3) requires this answer
		s.destroy(id)
	case *cmid.Closed:
		s.over()
	case cmid.Failure:
		s.failed(e)
		if id == s.listener {
			s.lost()
			return
		}
		s.destroy(id)
	}
}

func (s *plainServer) accept(id *cmid.ID) error {
	if err := s.queues.createQP(id); err != nil {
		return err
	}
	return id.Accept(nil, nil)
}

func (s *plainServer) destroy(id *cmid.ID) {
	if id.Do(&cmid.DestroyID{}, nil) == nil {
		s.over()
	}
}
