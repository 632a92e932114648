package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/iwarp"
)

// where has the flags of every subcommand: the side, and the addresses of both sides.
type where struct {
	server, client bool
	addr, port     string
	source         netip.Addr
	device         device.Kind
	timeout        time.Duration
}

// addrUsage is the help of -a in most subcommands.
const addrUsage = "`HOST[:PORT]` to connect to, or to listen on (default every address; with the kernel's devices every IPv4 address)"

// command has the texts for the flags of where in a subcommand's help.
type command struct {
	name, usage         string
	server, client      string // text after "be"
	addr, port, timeout string
	patience            time.Duration
}

// newFlagSet makes a flag set with the flags of where.
func (c command) newFlagSet(w *where) *flag.FlagSet {
	f := flag.NewFlagSet("rdmactor "+c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // main reports errors, once
	f.BoolVar(&w.server, "s", false, "be "+c.server)
	f.BoolVar(&w.client, "c", false, "be "+c.client)
	f.StringVar(&w.addr, "a", "", c.addr)
	// The same name as in rping and cmtime.
	f.StringVar(&w.port, "p", "", "`PORT`, unless -a has one (default "+c.port+"); 0 lets a server choose a free one")
	f.TextVar(&w.source, "I", netip.Addr{}, "client: connect from this `IP` address of the host")
	f.StringVar((*string)(&w.device), "device", string(device.Auto), device.Usage)
	f.DurationVar(&w.timeout, "timeout", c.patience, c.timeout)
	return f
}

// parseArgs parses the command line. If that asks for help, parseArgs prints the help and returns
// flag.ErrHelp.
func (c command) parseArgs(f *flag.FlagSet, args []string, stdout io.Writer) error {
	return cli.ParseFlags(f, c.usage, spreadFlags(f, args), stdout)
}

// completeAddress completes -a and -p. If neither has a port, the port is otherwise.
func (c command) completeAddress(w *where, otherwise string, passive bool) error {
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

// lookUpAddrs resolves a name and the port. If passive is true, the results are addresses to listen
// on. There is at least one.
func (w *where) lookUpAddrs(ctx context.Context, name string, passive bool) ([]cmid.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return device.LookupAll(ctx, cmid.PortSpaceTCP, name, w.port, passive)
}

// listenAddr returns the address on which a server listens, and its device.
func (w *where) listenAddr(ctx context.Context) (at cmid.Addr, c device.Choice, err error) {
	list, err := w.lookUpAddrs(ctx, w.addr, true)
	if err != nil {
		return at, c, err
	}
	at = list[0]
	c, err = device.Listening(w.device, at.Addr())
	if w.addr == "" && c.Kind == device.IWARP && hasIPv6() {
		at = cmid.AddrFrom(netip.IPv6Unspecified(), at.Port()) // it takes IPv4 as well
	}
	return at, c, err
}

// hasIPv6 reports whether this host has IPv6.
func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::]:0")
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// toEach calls try with each address of the server's name, and the device for it, until one
// connects or the server's program rejects. name is the subcommand's: the errors of all addresses
// but the last go to stderr.
func (w *where) toEach(
	ctx context.Context, name string, stderr io.Writer, try func(peer cmid.Addr, c device.Choice, last bool) (connected bool, err error),
) error {
	peers, err := w.lookUpAddrs(ctx, w.addr, false)
	if err != nil {
		return err
	}
	for i, peer := range peers {
		connected, last := false, i == len(peers)-1
		c, err := device.Dialling(w.device, w.source, peer.Addr())
		if err == nil {
			connected, err = try(peer, c, last)
		}
		rejected, ok := errors.AsType[*cmid.Rejected](err)
		if err == nil || connected || last || ctx.Err() != nil || ok && rejected.Reason.ByApplication() {
			return err
		}
		fmt.Fprintf(stderr, "rdmactor: %s: %v: %s; trying %v\n", name, peer, cmid.Brief(err), peers[i+1])
	}
	return nil
}

// newDriver makes the driver of the chosen device. If the program made the choice, it prints
// it. The device's time limit for a reply is a little less than --timeout, so its error comes
// first, which reports how far the connection got.
func (w *where) newDriver(c device.Choice, crc bool, stderr io.Writer) cmid.Driver {
	if c.Why != "" {
		fmt.Fprintln(stderr, c)
	}
	c.IWARP = iwarp.Config{CRC: crc, ReplyTimeout: min(10*time.Second, w.timeout*9/10)}
	return c.Driver()
}

// spreadFlags turns "-vVC10", which rping accepts because of getopt, into "-v -V -C 10" for package
// flag. It does not change an argument that is the whole name of a flag in f.
func spreadFlags(f *flag.FlagSet, args []string) []string {
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

// plural returns a number with a noun, such as "1 round" or "2 rounds".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
