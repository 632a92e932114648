package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/doctor"
)

const usage = `NAME
  adapter test - does this adapter work with rdmactor?

SYNOPSIS
  adapter test [DEVICE|ADDR] [--libibverbs] [--groups PATTERN] [--suite NAME] [-v]

DESCRIPTION
  It runs the conformance suite and a loopback suite (echo, large messages, Writes and Reads, atomics, many connections) on one device,
  with both sides on the device's own address, each in a process of its own. The default is the first usable device. What it needs:
  an address on the device (adapter doctor says so), and none of it goes beyond the device.

  Nothing of the machine is changed. What would need that, such as a second address or a device that goes, is skipped, and the table
  says why. Afterwards the device's objects are counted: there must be as many as before.

  What it prints is a report: please send it, whether all is well or not, to
  ` + reportTo + `. The status is 0 if nothing has failed.

FLAGS
`

// reportTo is the address for reports.
const reportTo = "https://github.com/rdmactor/rdmactor/issues"

type options struct {
	on             string
	library, chat  bool
	groups, suites string
}

func parseOptions(args []string, stdout io.Writer) (o options, err error) {
	f := flag.NewFlagSet("adapter test", flag.ContinueOnError)
	f.BoolVar(&o.library, "libibverbs", false, "open rxe and siw through libibverbs, too")
	f.BoolVar(&o.chat, "v", false, "print what the suites print, as they run, to standard error")
	f.StringVar(&o.groups, "groups", "", "run only groups of the suites that match `PATTERN`, as in go test -run")
	f.StringVar(&o.suites, "suite", "", "run only suite `NAME`: conformance or loopback")
	rest, err := cli.Parse(f, usage, args, stdout)
	switch {
	case err != nil:
		return o, err
	case len(rest) > 1:
		err = fmt.Errorf("unexpected %q", rest[1])
	case o.suites != "" && o.suites != "conformance" && o.suites != "loopback":
		err = fmt.Errorf("--suite %q: want conformance or loopback", o.suites)
	}
	if err != nil {
		return o, fmt.Errorf("%w; see adapter test --help", err)
	}
	if len(rest) == 1 {
		o.on = rest[0]
	}
	return o, nil
}

// runSuites runs the suites on a device.
func runSuites(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stdout)
	if err != nil {
		return err
	}
	machine, err := doctor.Look(ctx, doctorConfig(o.library))
	if err != nil {
		return err
	}
	p, err := o.makePlan(machine)
	if err != nil {
		return errors.Join(machine.WriteText(stdout), err)
	}
	fmt.Fprintf(stdout, "%s at %v. This takes minutes; send what it prints to %s\n\n", p.Device, p.Address, reportTo)
	var report bytes.Buffer
	if err := machine.WriteText(&report); err != nil {
		return err
	}
	before, counted := countObjects(p.Device)
	good := true
	for _, suite := range o.chosenSuites() {
		p.Suite = suite
		fmt.Fprintf(stderr, "%s ...\n", suite)
		r, err := p.runProcess(ctx, o.chat, stderr)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fmt.Fprintln(&report)
		r.writeTable(&report, suite)
		if err != nil {
			fmt.Fprintf(&report, "%s: its process: %v\n", suite, err)
		}
		good = good && err == nil && r.allPassed()
	}
	clean, left := waitSettled(ctx, p.Device, before, counted)
	fmt.Fprintf(&report, "\nleft behind: %s\n", left)
	if _, err := stdout.Write(report.Bytes()); err != nil {
		return err
	}
	if !good || !clean {
		return fmt.Errorf("%s does not pass: please send the report to %s", p.Device, reportTo)
	}
	fmt.Fprintf(stdout, "%s passes. Nobody knows that but you: please send the report to %s\n", p.Device, reportTo)
	return nil
}

// chosenSuites returns the suites to run.
func (o *options) chosenSuites() []string {
	switch o.suites {
	case "conformance":
		return []string{conformanceSuite}
	case "loopback":
		return []string{loopbackSuite}
	}
	return []string{conformanceSuite, loopbackSuite}
}

// makePlan chooses the device and the addresses.
func (o *options) makePlan(r *doctor.Report) (p plan, err error) {
	i := slices.IndexFunc(r.Devices, func(d doctor.Device) bool {
		if o.on == "" {
			return d.Usable
		}
		return d.Name == o.on || slices.Contains(d.Addresses, o.on)
	})
	switch {
	case i < 0 && o.on == "":
		return p, doctor.ErrUnusable
	case i < 0:
		return p, fmt.Errorf("no RDMA device is called %s, or has that address", o.on)
	}
	d := &r.Devices[i]
	if !d.Usable {
		return p, fmt.Errorf("%s is not usable: the way out is above", d.Name)
	}
	p = plan{
		Device: d.Name, Driver: d.Driver, Release: r.Kernel, Library: o.library, Pattern: o.groups, IWARP: d.Transport == "iWARP", Atomics: d.Limits.Atomics,
	}
	own := parseAddrs(d.Addresses)
	p.Address = own[0]
	if a, err := netip.ParseAddr(o.on); err == nil {
		p.Address = a
	}
	p.Second = otherOfFamily(p.Address, own)
	p.Plain = otherOfFamily(p.Address, r.Plain())
	for n := range r.Devices {
		if other := &r.Devices[n]; n != i && other.Usable && !p.Other.IsValid() {
			p.Other = otherOfFamily(p.Address, parseAddrs(other.Addresses))
		}
	}
	return p, nil
}

// parseAddrs parses addresses. IPv4 comes first, because most of the suite is about it.
func parseAddrs(texts []string) (all []netip.Addr) {
	for _, s := range texts {
		if a, err := netip.ParseAddr(s); err == nil {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return all
}

// otherOfFamily returns the first of the addresses that differs from one and has its family.
func otherOfFamily(one netip.Addr, of []netip.Addr) netip.Addr {
	for _, a := range of {
		if a != one && a.Is4() == one.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// runProcess runs the plan in a separate process.
func (p *plan) runProcess(ctx context.Context, chat bool, stderr io.Writer) (*results, error) {
	env, err := p.environWithPlan()
	if err != nil {
		return &results{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return &results{}, err
	}
	cmd := exec.CommandContext(ctx, self) //nolint:gosec // itself
	cmd.Env = env
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return &results{}, err
	}
	cmd.Stderr = cmd.Stdout // a crash is printed there
	if err := cmd.Start(); err != nil {
		return &results{}, err
	}
	var echo io.Writer
	if chat {
		echo = stderr
	}
	r, err := readResults(out, echo)
	if err != nil {
		_, _ = io.Copy(io.Discard, out) // so that the process can end
	}
	return r, errors.Join(err, cmd.Wait())
}
