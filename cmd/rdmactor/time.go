package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/timing"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/device"
)

// timer is one run of the subcommand time.
type timer struct {
	timeFlags
	ctx            context.Context
	stdout, stderr io.Writer
}

// timeSteps runs the subcommand time.
func timeSteps(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseTime(args, stdout)
	if err != nil {
		return err
	}
	t := &timer{o, ctx, stdout, stderr}
	before := inUse()
	switch {
	case o.server:
		err = t.serveConns()
	case o.client:
		err = t.measureRemote()
	default:
		err = t.measureLocal()
	}
	if err == nil {
		err = before.checkLeaks()
	}
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	return nil
}

func (t *timer) newConfig(c device.Choice) timing.Config {
	log := slog.New(slog.NewTextHandler(t.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return timing.Config{Driver: t.newDriver(c, false, t.stderr), Timeout: t.timeout, Log: log}
}

// serveConns accepts connections until Ctrl-C.
func (t *timer) serveConns() error {
	at, choice, err := t.listenAddr(t.ctx)
	if err != nil {
		return err
	}
	cfg := t.newConfig(choice)
	s, err := timing.Listen(cfg, at)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.stdout, "listening on %v\n", s.Addr())
	select {
	case <-t.ctx.Done():
	case <-s.Failed():
	}
	err = s.Close()
	n := s.Served()
	fmt.Fprintf(t.stdout, "served %s, %s\n", plural(n.Accepted, "connection"), plural(n.Errors, "error"))
	return errors.Join(n.First, err)
}

// measureRemote measures against a server in another process.
func (t *timer) measureRemote() error {
	return t.toEach(t.ctx, "time", t.stderr, func(peer cmid.Addr, c device.Choice, last bool) (bool, error) {
		return t.runClient(t.newConfig(c), c, peer, nil, last)
	})
}

// measureLocal measures against a server in this process. The server has a separate device, and a
// separate loop.
func (t *timer) measureLocal() (err error) {
	choice, err := t.chooseBoth()
	if err != nil {
		return err
	}
	at, err := t.lookUpAddrs(t.ctx, choice.Local.String(), true)
	if err != nil {
		return err
	}
	cfg := t.newConfig(choice)
	s, err := timing.Listen(cfg, at[0])
	if err != nil {
		return err
	}
	cfg.Driver = t.newDriver(choice, false, io.Discard) // the choice has already been printed
	_, err = t.runClient(cfg, choice, s.Addr(), s, true)
	return errors.Join(err, s.Close())
}

func (t *timer) chooseBoth() (device.Choice, error) {
	if t.addr == "" {
		return device.Any(t.device)
	}
	at, choice, err := t.listenAddr(t.ctx)
	if err == nil && at.IsWildcard() {
		err = fmt.Errorf("-a %s: both sides of a connection need an address", t.addr)
	}
	return choice, err
}

// runClient makes the runs and prints their times. s is the server. It is nil if the server is in
// another process. If a client cannot connect, and peer is not the last address to try, it makes no
// further runs and prints nothing of them.
func (t *timer) runClient(cfg timing.Config, choice device.Choice, peer cmid.Addr, s *timing.Server, last bool) (connected bool, err error) {
	cl, err := timing.OpenClient(cfg)
	if err != nil {
		return false, err
	}
	r := timing.Report{Device: string(choice.Kind), Level: "actor", Local: choice.Local.String(), Server: peer.String()}
	if !t.json {
		fmt.Fprintf(t.stdout, "%s, level %s, %v to %v\n\n", r.Device, r.Level, choice.Local, peer)
	}
	connected, first, err := t.makeRuns(cl, &r, choice.Local, peer, s, last)
	err = errors.Join(err, cl.Close())
	if s != nil {
		n := s.Served()
		r.Served, r.Errors = &n.Accepted, r.Errors+n.Errors
		if first == nil && n.First != nil {
			first = fmt.Errorf("the server: %w", n.First)
		}
	}
	if first != nil {
		r.First = first.Error()
		err = errors.Join(fmt.Errorf("%s, the first: %w", plural(r.Errors, "error"), first), err)
	}
	if t.json && (connected || last) {
		err = errors.Join(err, r.JSON(t.stdout))
	}
	return connected, err
}

// makeRuns makes the runs that the flags request. It returns as first the error of the first
// identifier that failed, and whether one was connected, or none had to be.
func (t *timer) makeRuns(
	cl *timing.Client, r *timing.Report, local netip.Addr, peer cmid.Addr, s *timing.Server, last bool,
) (connected bool, first, err error) {
	plans := make([]timing.Plan, 0, len(t.counts)+1)
	for _, n := range t.counts {
		plans = append(plans, timing.Plan{IDs: n, Connect: true})
	}
	if t.ids > 0 {
		plans = append(plans, timing.Plan{IDs: t.ids})
	}
	accepted := 0
	for _, p := range plans {
		p.Local, p.Peer = cmid.AddrFrom(local, 0), peer
		run, err := cl.Run(t.ctx, p)
		if err != nil {
			return connected, first, err
		}
		r.Runs = append(r.Runs, run)
		r.Errors += run.Errors
		if first == nil {
			first = run.First
		}
		connected = connected || run.Errors < run.IDs
		if !connected && !last {
			return connected, first, nil
		}
		if !t.json {
			run.Table(t.stdout)
		}
		if s == nil || !p.Connect {
			continue
		}
		accepted += p.IDs - run.Errors
		if left := s.Idle(); left > 0 {
			return connected, first, fmt.Errorf("the server has %s left whose client has gone", plural(left, "connection"))
		}
		if n := s.Served().Accepted; first == nil && n != accepted {
			return connected, first, fmt.Errorf("the server has accepted %s, the client has made %d", plural(n, "connection"), accepted)
		}
	}
	return connected, first, nil
}
