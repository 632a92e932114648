package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/iwarp"
)

// where are the flags that every subcommand has: which side it is, and the addresses of both.
type where struct {
	server, client bool
	addr, port     string
	source         netip.Addr
	device         device.Kind
	timeout        time.Duration
}

// addrUsage is the help of -a in most subcommands.
const addrUsage = "`HOST[:PORT]` to connect to, or to listen on (default every IPv4 address, :: for every one)"

// command is what a subcommand's help says about the flags of where.
type command struct {
	name, usage         string
	server, client      string // behind "be"
	addr, port, timeout string
	patience            time.Duration
}

// flags makes a flag set with the flags of where.
func (c command) flags(w *where) *flag.FlagSet {
	f := flag.NewFlagSet("rdmactor "+c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // main reports errors, once
	f.BoolVar(&w.server, "s", false, "be "+c.server)
	f.BoolVar(&w.client, "c", false, "be "+c.client)
	f.StringVar(&w.addr, "a", "", c.addr)
	// as rping and cmtime
	f.StringVar(&w.port, "p", "", "`PORT`, unless -a has it (default "+c.port+"); a server takes a free one for 0")
	f.TextVar(&w.source, "I", netip.Addr{}, "client: IP `ADDR` of this host to connect from")
	f.StringVar((*string)(&w.device), "device", string(device.Auto), device.Usage)
	f.DurationVar(&w.timeout, "timeout", c.patience, c.timeout)
	return f
}

// parse reads the command line. Its error is flag.ErrHelp when that asked for help, which is
// printed then.
func (c command) parse(f *flag.FlagSet, args []string, stdout io.Writer) error {
	err := f.Parse(spread(f, args))
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stdout)
		fmt.Fprint(stdout, c.usage)
		f.PrintDefaults()
		return err
	case err == nil && f.NArg() > 0:
		err = fmt.Errorf("unexpected %q", f.Arg(0))
	}
	if err != nil {
		return fmt.Errorf("%w; see rdmactor %s --help", err, c.name)
	}
	return nil
}

// check completes -a and -p. otherwise is the port when neither has it.
func (c command) check(w *where, otherwise string, passive bool) error {
	if w.client && w.addr == "" {
		return fmt.Errorf("connect to whom? rdmactor %s -c -a HOST:PORT", c.name)
	}
	if w.port != "" {
		otherwise = w.port
	}
	a, err := cli.ParseAddress(w.addr, otherwise, passive)
	if err == nil && w.port != "" && a.Port != w.port {
		err = fmt.Errorf("-a %s -p %s: which port?", w.addr, w.port)
	}
	if err != nil {
		return err
	}
	w.addr, w.port = a.Host, a.Port
	return w.device.Check()
}

// lookup resolves a name and the port as rping does, to an address to listen on when passive.
func (w *where) lookup(ctx context.Context, name string, passive bool) (cmid.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return device.Lookup(ctx, cmid.PortSpaceTCP, name, w.port, passive)
}

// listening is where a server listens, and on which device.
func (w *where) listening(ctx context.Context) (at cmid.Addr, c device.Choice, err error) {
	if at, err = w.lookup(ctx, w.addr, true); err == nil {
		c, err = device.Listening(w.device, at.Addr())
	}
	return at, c, err
}

// dialling is where a client connects to, and with which device.
func (w *where) dialling(ctx context.Context) (peer cmid.Addr, c device.Choice, err error) {
	if peer, err = w.lookup(ctx, w.addr, false); err == nil {
		c, err = device.Dialling(w.device, w.source, peer.Addr())
	}
	return peer, c, err
}

// driver makes the driver of the chosen device. It prints the choice if the program made it. The
// device waits for a reply a little less than --timeout, so that its error comes first: it says
// how far the connection has come.
func (w *where) driver(c device.Choice, crc bool, stderr io.Writer) cmid.Driver {
	if c.Why != "" {
		fmt.Fprintln(stderr, c)
	}
	c.IWARP = iwarp.Config{CRC: crc, ReplyTimeout: min(10*time.Second, w.timeout*9/10)}
	return c.Driver()
}

// spread turns getopt's "-vVC10", which rping takes, into flag's "-v -V -C 10". It leaves alone
// what f knows by its whole name.
func spread(f *flag.FlagSet, args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		letters, ok := strings.CutPrefix(a, "-")
		name, _, _ := strings.Cut(letters, "=")
		if !ok || strings.HasPrefix(letters, "-") || len(name) < 2 || f.Lookup(name) != nil || name == "help" {
			out = append(out, a)
			continue
		}
		for letters != "" {
			letter := letters[:1]
			letters = letters[1:]
			out = append(out, "-"+letter)
			if fl := f.Lookup(letter); fl != nil && !isBool(fl) && letters != "" {
				out = append(out, letters)
				break
			}
		}
	}
	return out
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// plural is "1 round", "2 rounds".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
