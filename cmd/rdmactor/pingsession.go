package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/internal/endpoint"
)

// session serves one event channel. Everything runs on the goroutine that called run.
type session struct {
	pingFlags
	ctx            context.Context
	stdout, stderr io.Writer

	ch    *endpoint.Channel
	role  role
	conns map[*cmid.ID]*conn
}

// role is the part of a session that differs between a client and a server.
type role interface {
	// start starts the work.
	start(addr cmid.Addr) error
	// other handles an event of an identifier that is not a connection, or is not one yet.
	other(id *cmid.ID, ev cmid.Event) error
	// stop is called once, after Ctrl-C. An error ends the program.
	stop() error
	// ended handles a connection's outcome. An error ends the program.
	ended(c *conn, err error) error
	// over reports whether there is nothing left to do.
	over() bool
}

// run runs the whole program. A client starts one session after the other, until it is connected.
func (s *session) run() error {
	if s.client {
		return s.toEach(s.ctx, "ping", s.stderr, func(peer cmid.Addr, c device.Choice, _ bool) (bool, error) {
			cl := &pingClient{s: s}
			s.role, s.conns = cl, make(map[*cmid.ID]*conn)
			err := s.play(peer, c)
			return cl.established, err
		})
	}
	s.role, s.conns = &pingServer{s: s}, make(map[*cmid.ID]*conn)
	at, choice, err := s.listening(s.ctx)
	if err != nil {
		return err
	}
	return s.play(at, choice)
}

// play runs the role at an address, on a new device.
func (s *session) play(addr cmid.Addr, choice device.Choice) (err error) {
	driver := s.driver(choice, s.crc, s.stderr)
	if s.pcap != "" {
		stop, failed := s.capture(driver)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	s.ch, err = endpoint.Open(driver)
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
	c := &conn{timeout: s.timeout, talk: t}
	c.ID = id
	s.conns[id] = c
	return c
}

// serve handles events and deadlines until the role is over.
func (s *session) serve() error {
	defer context.AfterFunc(s.ctx, s.ch.Stop)()
	for {
		if err := s.ch.Drain(s.event); err != nil {
			return err
		}
		wait, err := s.sweep()
		if err != nil || s.role.over() {
			return err
		}
		why, err := s.ch.Wait(wait)
		if why == endpoint.Stopped {
			err = s.role.stop()
		}
		if err != nil {
			return err
		}
	}
}

// event handles an event. Completions are handled while the channel is drained, by conn.completed.
func (s *session) event(id *cmid.ID, ev cmid.Event) error {
	if c := s.conns[id]; c != nil {
		c.event(ev)
		return nil
	}
	return s.role.other(id, ev)
}

// sweep ends the connections whose deadline has passed, and removes those that have ended. It
// returns the time until the next deadline. That is negative if there is none.
func (s *session) sweep() (wait time.Duration, err error) {
	now := time.Now()
	var next time.Time
	for _, c := range s.conns {
		if !c.over && !now.Before(c.deadline) {
			c.late()
		}
		if c.over {
			delete(s.conns, c.ID)
			c.free()
			err = errors.Join(err, s.role.ended(c, c.err))
		} else if next.IsZero() || c.deadline.Before(next) {
			next = c.deadline
		}
	}
	if next.IsZero() {
		return -1, err
	}
	return max(0, time.Until(next)), err
}

// ping runs the subcommand ping.
func ping(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parsePing(args, stdout)
	if err != nil {
		return err
	}
	s := &session{pingFlags: o, ctx: ctx, stdout: stdout, stderr: stderr}
	if err := s.run(); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}
