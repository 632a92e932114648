package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// session is one event channel, served by the goroutine of run: whatever happens, happens in a call
// from there.
type session struct {
	pingFlags
	ctx            context.Context
	stdout, stderr io.Writer

	ch    *cmid.Channel
	role  role
	conns map[*cmid.ID]*conn
}

// role is what a client and a server do differently.
type role interface {
	// start begins the work.
	start(addr cmid.Addr) error
	// other takes what happened to an identifier that is no connection, or none yet.
	other(id *cmid.ID, ev cmid.Event) error
	// stop is called once, when the user does not want any more. An error ends the program.
	stop() error
	// ended takes a connection's outcome. An error ends the program.
	ended(c *conn, err error) error
	// over says whether there is nothing left to do.
	over() bool
}

func (s *session) run() (err error) {
	find := s.listening
	if s.client {
		find = s.dialling
	}
	addr, choice, err := find(s.ctx)
	if err != nil {
		return err
	}
	s.ch, err = cmid.OpenChannel(s.driver(choice, s.crc, s.stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.ch.Close()) }()
	if err := s.role.start(addr); err != nil {
		return err
	}
	return s.serve()
}

func (s *session) newConn(id *cmid.ID, t talk) *conn {
	c := &conn{timeout: s.timeout, id: id, talk: t}
	s.conns[id] = c
	return c
}

// serve handles events and deadlines until the role is over.
func (s *session) serve() error {
	fd, err := s.ch.FD()
	if err != nil {
		return err
	}
	stopped, wake, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stopped.Close()
	defer wake.Close()
	defer context.AfterFunc(s.ctx, func() { _ = wake.Close() })()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(stopped.Fd()), Events: unix.POLLIN}}
	for {
		if err := s.drain(); err != nil {
			return err
		}
		wait, err := s.sweep()
		if err != nil || s.role.over() {
			return err
		}
		_, err = unix.Poll(fds, wait)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
		if len(fds) > 1 && fds[1].Revents != 0 {
			fds = fds[:1]
			if err := s.role.stop(); err != nil {
				return err
			}
		}
	}
}

// drain fetches events until there is none. Completions are handled inside GetEvent, by
// conn.completed.
func (s *session) drain() error {
	for {
		ev, id, err := s.ch.GetEvent()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return err
		}
		if c := s.conns[id]; c != nil {
			c.event(ev)
		} else if err := s.role.other(id, ev); err != nil {
			return err
		}
	}
}

// sweep ends the connections whose time is over, and forgets those that have ended. It returns the
// milliseconds until the next deadline, -1 when there is none.
func (s *session) sweep() (wait int, err error) {
	now := time.Now()
	var next time.Time
	for _, c := range s.conns {
		if !c.over && !now.Before(c.deadline) {
			c.late()
		}
		if c.over {
			delete(s.conns, c.id)
			c.free()
			err = errors.Join(err, s.role.ended(c, c.err))
		} else if next.IsZero() || c.deadline.Before(next) {
			next = c.deadline
		}
	}
	if next.IsZero() {
		return -1, err
	}
	return int(time.Until(next)/time.Millisecond) + 1, err
}
