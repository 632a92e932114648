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
	// handleOther handles an event of an identifier that is not a connection, or is not one yet.
	handleOther(id *cmid.ID, ev cmid.Event) error
	// stop is called once, after Ctrl-C. An error ends the program.
	stop() error
	// handleOutcome handles a connection's outcome. An error ends the program.
	handleOutcome(c *conn, err error) error
	// isOver reports whether there is nothing left to do.
	isOver() bool
}

// run runs the whole program. A client starts one session after the other, until it is connected.
func (s *session) run() error {
	if s.client {
		return s.toEach(s.ctx, "ping", s.stderr, func(peer cmid.Addr, c device.Choice, _ bool) (bool, error) {
			cl := &pingClient{s: s}
			s.role, s.conns = cl, make(map[*cmid.ID]*conn)
			err := s.playRole(peer, c)
			return cl.established, err
		})
	}
	s.role, s.conns = &pingServer{s: s}, make(map[*cmid.ID]*conn)
	at, choice, err := s.listenAddr(s.ctx)
	if err != nil {
		return err
	}
	return s.playRole(at, choice)
}

// playRole runs the role at an address, on a new device.
func (s *session) playRole(addr cmid.Addr, choice device.Choice) (err error) {
	driver := s.newDriver(choice, s.crc, s.stderr)
	if s.pcap != "" {
		stop, failed := s.startCapture(driver)
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
	return s.serveEvents()
}

func (s *session) newConn(id *cmid.ID, t talk) *conn {
	c := &conn{timeout: s.timeout, talk: t}
	c.ID = id
	s.conns[id] = c
	return c
}

// serveEvents handles events and deadlines until the role is over.
func (s *session) serveEvents() error {
	defer context.AfterFunc(s.ctx, s.ch.Stop)()
	for {
		if err := s.ch.Drain(s.handleEvent); err != nil {
			return err
		}
		wait, err := s.sweepConns()
		if err != nil || s.role.isOver() {
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

// handleEvent handles an event. Completions are handled while the channel is drained, by
// conn.pollCompletions.
func (s *session) handleEvent(id *cmid.ID, ev cmid.Event) error {
	if c := s.conns[id]; c != nil {
		c.handleEvent(ev)
		return nil
	}
	return s.role.handleOther(id, ev)
}

// sweepConns ends the connections whose deadline has passed, and removes those that have ended. It
// returns the time until the next deadline. That is negative if there is none.
func (s *session) sweepConns() (wait time.Duration, err error) {
	now := time.Now()
	var next time.Time
	for _, c := range s.conns {
		if !c.over && !now.Before(c.deadline) {
			c.failTimedOut()
		}
		if c.over {
			delete(s.conns, c.ID)
			c.releaseAll()
			err = errors.Join(err, s.role.handleOutcome(c, c.err))
		} else if next.IsZero() || c.deadline.Before(next) {
			next = c.deadline
		}
	}
	if next.IsZero() {
		return -1, err
	}
	return max(0, time.Until(next)), err
}

// runPing runs the subcommand ping.
func runPing(ctx context.Context, args []string, stdout, stderr io.Writer) error {
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
