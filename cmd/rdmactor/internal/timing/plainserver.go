package timing

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
)

// plainServer serves with the plain calls, on a goroutine of its own.
type plainServer struct {
	*count
	ch       *channel
	queues   queues
	listener *cmid.ID
	at       cmid.Addr
	timeout  time.Duration
	ended    chan error
	closed   bool
}

func listenPlain(c Config, at cmid.Addr) (Server, error) {
	ch, err := openChannel(c.Driver)
	if err != nil {
		return nil, err
	}
	s := &plainServer{count: newCount(), ch: ch, queues: make(queues), timeout: c.Timeout, ended: make(chan error, 1)}
	if s.listener, err = ch.CreateID(cmid.PortSpaceTCP); err == nil {
		err = s.listener.BindAddr(at)
	}
	if err == nil {
		err = s.listener.Listen(0) // as cmtime: as many as the device holds
	}
	if err != nil {
		return nil, errors.Join(err, ch.close())
	}
	s.at = s.listener.LocalAddr()
	go func() {
		err := ch.serve(c.Timeout, s.handle, func() bool { return s.closed }, func() {})
		if errors.Is(err, cli.ErrInterrupted) {
			err = nil
		}
		s.ended <- errors.Join(err, s.free())
	}()
	return s, nil
}

func (s *plainServer) Addr() cmid.Addr { return s.at }

func (s *plainServer) Idle() int { return s.idle(s.timeout) }

func (s *plainServer) Close() error {
	s.ch.stop()
	return <-s.ended
}

// free gives everything back.
func (s *plainServer) free() error {
	s.listener.Do(&cmid.DestroyID{})
	// In this order: queue pairs may still be on their way.
	return errors.Join(s.ch.close(), s.queues.close())
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
		id.Do(&cmid.Disconnect{}) // rdma_get_cm_event(3): the answer is due
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
	if ev := id.Do(&cmid.DestroyID{}); ev != nil {
		s.over()
	}
}
