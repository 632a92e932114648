package perf

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/verbs"
)

const (
	backlog = 128
	// serverMemory bounds the memory of all of a server's connections together.
	serverMemory = 1 << 30
)

// Server serves the tests of any number of clients.
type Server struct {
	h        *host
	listener *cmid.ID
	at       cmid.Addr
	conns    map[*conn]struct{}
	memory   int // of conns
	served   int
	closing  bool
	empty    chan struct{} // closed when the server is closing and has no connections left
	lost     chan error    // receives the error if the listener has failed
}

// Listen opens the device, and serves tests at the address at.
func Listen(cfg Config, at cmid.Addr) (*Server, error) {
	s := &Server{conns: make(map[*conn]struct{}), empty: make(chan struct{}), lost: make(chan error, 1)}
	h, err := openHost(cfg, s.handleEvent)
	if err != nil {
		return nil, err
	}
	s.h = h
	err = h.runOnLoop(func() (err error) {
		s.listener, err = endpoint.Listen(h.ch, cmid.PortSpaceTCP, at, backlog)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	s.at = s.listener.LocalAddr()
	return s, nil
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() cmid.Addr { return s.at }

// Failed returns a channel that delivers the error if the listener fails.
func (s *Server) Failed() <-chan error { return s.lost }

// Close ends the running tests and frees everything. It returns the number of tests served.
func (s *Server) Close() (served int, err error) {
	err = s.h.runOnLoop(func() error {
		s.closing = true
		for c := range s.conns {
			c.hangUp()
		}
		s.notifyIfEmpty()
		return s.listener.Destroy()
	})
	<-s.empty
	return s.served, errors.Join(err, s.h.close())
}

// notifyIfEmpty notifies Close if the last connection is gone.
func (s *Server) notifyIfEmpty() {
	if s.closing && len(s.conns) == 0 {
		close(s.empty)
	}
}

func (s *Server) handleEvent(id *cmid.ID, ev cmid.Event, answers *cmid.Pending) {
	answers.Answer(ev)
	c, _ := id.Context.(*conn)
	switch e := ev.(type) {
	case *cmid.ConnectRequest:
		s.handleRequest(id, e)
	case *cmid.Disconnected:
		if c != nil {
			c.handleDisconnected(e.Err)
		}
	case cmid.Failure:
		switch {
		case id == s.listener:
			s.lost <- e
		case c != nil:
			c.failWithoutPeer(e)
		default: // after a Reject, if the client has disconnected
			_ = id.Destroy()
		}
	}
}

// handleRequest accepts a test, or rejects it with the reason.
func (s *Server) handleRequest(id *cmid.ID, e *cmid.ConnectRequest) {
	if err := s.acceptTest(id, e); err != nil {
		s.h.cfg.Complain(fmt.Errorf("client %v: %w", e.Peer, err))
	}
}

func (s *Server) acceptTest(id *cmid.ID, e *cmid.ConnectRequest) error {
	t, from, err := decodeRequest(e.PrivateData)
	if err == nil && s.memory+t.Size*t.Depth > serverMemory {
		err = fmt.Errorf("the server's other clients have its memory, %d of %d bytes", s.memory, serverMemory)
	}
	if err != nil || s.closing {
		reason := []byte("the server ends")
		if err != nil {
			reason = []byte(err.Error())
		}
		_ = id.Reject(reason[:min(len(reason), id.Limits().RejectData)])
		_ = id.Destroy()
		return err
	}
	c := &conn{Endpoint: endpoint.Endpoint{ID: id}, h: s.h, test: t}
	c.complete = c.serverHandler()
	c.ended = func(err error) {
		delete(s.conns, c)
		s.memory -= t.Size * t.Depth
		s.served++
		if err != nil {
			s.h.cfg.Complain(fmt.Errorf("client %v: %w", e.Peer, err))
		}
		s.notifyIfEmpty()
	}
	id.Context = c
	s.conns[c] = struct{}{}
	s.memory += t.Size * t.Depth
	if err := errors.Join(s.h.cfg.Transport.Set(id), c.setUpQueuePair(t.serverShape())); err != nil {
		c.fail(err)
		return nil
	}
	c.prepareRequests(from)
	c.watchProgress()
	if err := id.Accept(encodeAnswer(c.memoryPlace()), s.h.cfg.Transport.AcceptParam(nil)); err != nil {
		c.fail(err)
	}
	return nil
}

// serverShape returns the resources that a server needs. A client that Reads sends heartbeats.
// Every other client gets an empty Send for each batch that has arrived.
func (t Test) serverShape() shape {
	s := shape{sends: markDepth, slots: markDepth, exposed: t.Op != Send}
	switch {
	case t.Op == Read:
	case t.Kind == Latency:
		s.whole, s.sendsData = t.Op == Send, true
	case t.Op == Send:
		s.slots, s.whole = t.Depth+t.batchSize(), true
	}
	return s
}

// serverHandler returns the handler of completions on the server's side of a test.
func (c *conn) serverHandler() func(*verbs.WC) error {
	batch := 1
	if c.test.Op == Send {
		batch = c.test.batchSize()
	}
	got := 0
	return func(wc *verbs.WC) error {
		switch {
		case wc.Op != verbs.Recv, c.test.Op == Read:
			return nil
		case c.test.Kind == Latency:
			return c.postHalfTrip()
		}
		if got++; got < batch {
			return nil
		}
		got = 0
		return c.postMark()
	}
}

// Serve serves until ctx is done or the listener fails. It calls up with the address when it
// listens. The error is that of the listener.
func Serve(ctx context.Context, cfg Config, at cmid.Addr, up func(cmid.Addr)) (served int, err error) {
	s, err := Listen(cfg, at)
	if err != nil {
		return 0, err
	}
	up(s.Addr())
	select {
	case <-ctx.Done():
	case err = <-s.Failed():
	}
	served, closeErr := s.Close()
	return served, errors.Join(err, closeErr)
}
