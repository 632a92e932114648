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
		err := serveEvents(ch, c.Timeout, s.handleEvent, func() bool { return false }, func() {})
		if errors.Is(err, cli.ErrInterrupted) {
			err = nil
		}
		s.ended <- errors.Join(err, s.releaseAll())
	}()
	return s, nil
}

func (s *plainServer) Close() error {
	s.ch.Stop()
	return <-s.ended
}

// releaseAll destroys the listener, and closes the channel and the completion queues.
func (s *plainServer) releaseAll() error {
	s.listener.Do(&cmid.DestroyID{}, nil)
	// The channel comes first, because queue pairs use the completion queues until it is closed.
	return errors.Join(s.ch.Close(), s.queues.close())
}

func (s *plainServer) handleEvent(id *cmid.ID, ev cmid.Event) {
	switch e := ev.(type) {
	case *cmid.ConnectRequest:
		s.countOpened()
		if err := s.acceptRequest(id); err != nil {
			s.recordError(fmt.Errorf("%v: %w", e.Peer, err))
			s.destroyID(id)
		}
	case *cmid.Established:
		s.countAccepted()
	case *cmid.Disconnected:
		if e.Err != nil {
			s.recordError(fmt.Errorf("%v: %w", id.PeerAddr(), e.Err))
		}
		id.Do(&cmid.Disconnect{}, nil) // rdma_get_cm_event(3) requires this answer
		s.destroyID(id)
	case *cmid.Closed:
		s.countClosed()
	case cmid.Failure:
		s.recordError(e)
		if id == s.listener {
			s.recordListenerLost()
			return
		}
		s.destroyID(id)
	}
}

func (s *plainServer) acceptRequest(id *cmid.ID) error {
	if err := s.queues.createQP(id); err != nil {
		return err
	}
	return id.Accept(nil, nil)
}

func (s *plainServer) destroyID(id *cmid.ID) {
	if id.Do(&cmid.DestroyID{}, nil) == nil {
		s.countClosed()
	}
}
