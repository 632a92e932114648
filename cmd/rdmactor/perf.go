package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/perf"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/device"
)

// perfer is one run of the subcommand perf.
type perfer struct {
	perfFlags
	ctx            context.Context
	stdout, stderr io.Writer
	tables         io.Writer
}

// runPerf runs the subcommand perf.
func runPerf(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parsePerf(args, stdout)
	if err != nil {
		return err
	}
	p := &perfer{o, ctx, stdout, stderr, stdout}
	if o.json == "-" {
		p.tables = io.Discard
	}
	if o.server {
		err = p.serveTests()
	} else {
		err = p.runClient()
	}
	if err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	return nil
}

func (p *perfer) newConfig(c device.Choice) perf.Config {
	return perf.Config{
		Driver:    p.newDriver(c, p.crc, p.stderr),
		Wait:      waits[p.wait],
		Timeout:   p.timeout,
		Transport: p.transportParams(),
		Complain:  func(err error) { fmt.Fprintln(p.stderr, "rdmactor: perf:", err) },
	}
}

// serveTests serves tests until Ctrl-C.
func (p *perfer) serveTests() error {
	at, choice, err := p.listenAddr(p.ctx)
	if err != nil {
		return err
	}
	n, err := perf.Serve(p.ctx, p.newConfig(choice), at, func(a cmid.Addr) { fmt.Fprintf(p.stdout, "listening on %v\n", a) })
	if err == nil {
		fmt.Fprintf(p.stdout, "served %s\n", plural(n, "test"))
	}
	return err
}

// runClient runs the client.
func (p *perfer) runClient() error {
	return p.toEach(p.ctx, "perf", p.stderr, p.measureAt)
}

// measureAt runs the client against one of the server's addresses.
func (p *perfer) measureAt(peer cmid.Addr, choice device.Choice, last bool) (connected bool, err error) {
	before := inUse()
	cl, err := perf.Open(p.newConfig(choice))
	if err != nil {
		return false, err
	}
	r := perf.Report{
		Device: string(choice.Kind), Level: "verbs", Wait: p.wait, CRC: p.crc, Local: choice.Local.String(), Server: peer.String(),
		Results: []perf.Result{},
	}
	fmt.Fprintln(p.tables, r.Head())
	from := cmid.Addr{}
	if p.source.IsValid() {
		from = cmid.AddrFrom(p.source, 0)
	}
	err = p.runTests(cl, &r, from, peer)
	connected = cl.Connected()
	err = errors.Join(err, cl.Close())
	if err == nil {
		err = before.checkLeaks()
	}
	if err != nil {
		r.Error = err.Error()
	}
	if !connected && !last && p.ctx.Err() == nil {
		return false, err
	}
	return connected, errors.Join(err, p.writeReports(&r))
}

// runTests runs the tests, and prints each result as soon as it is there. Ctrl-C ends them. That is
// an error only if nothing was measured.
func (p *perfer) runTests(cl *perf.Client, r *perf.Report, from, peer cmid.Addr) error {
	for i, t := range p.requestedTests() {
		plan := perf.Plan{Test: t, Local: from, Peer: peer, WarmUp: p.warmUp, Duration: p.duration, Count: p.count}
		res, err := cl.Run(p.ctx, plan)
		if err == nil {
			r.Results = append(r.Results, res)
			res.Row(p.tables, i%len(p.sizes) == 0)
		}
		if p.ctx.Err() != nil && len(r.Results) > 0 {
			err, r.Interrupted = nil, true
			fmt.Fprintln(p.stderr, "rdmactor: perf: interrupted: that is what was measured")
		}
		if err != nil || r.Interrupted {
			return err
		}
	}
	return nil
}

// writeReports writes the document that --json asks for.
func (p *perfer) writeReports(r *perf.Report) (err error) {
	switch p.json {
	case "":
	case "-":
		err = r.JSON(p.stdout)
	default:
		var f *os.File
		if f, err = os.Create(p.json); err == nil {
			err = errors.Join(r.JSON(f), f.Close())
		}
	}
	return err
}
