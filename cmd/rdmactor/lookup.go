package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/iwarp"
)

// The flags of all subcommands that say where.
const (
	addrUsage   = "`HOST[:PORT]` to connect to, or to listen on (default every IPv4 address, :: for every one)"
	sourceUsage = "client: IP `ADDR` of this host to connect from"
)

// portUsage is what -p is: the way of rping and cmtime to say what -a can.
func portUsage(otherwise string) string {
	return "`PORT`, unless -a has it (default " + otherwise + "); a server takes a free one for 0"
}

// endpoint is where -a and -p say. otherwise is the port when neither does.
func endpoint(addr, port, otherwise string, passive bool) (cli.Address, error) {
	if port != "" {
		otherwise = port
	}
	a, err := cli.ParseAddress(addr, otherwise, passive)
	if err == nil && port != "" && a.Port != port {
		err = fmt.Errorf("-a %s -p %s: which port?", addr, port)
	}
	return a, err
}

// lookup is the address that a name and a port mean, of the kind that rping would take: to listen on when passive.
func lookup(ctx context.Context, timeout time.Duration, name, port string, passive bool) (cmid.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	hints := &cmid.AddrInfo{PortSpace: cmid.PortSpaceTCP}
	if passive {
		hints.Flags = cmid.RAIPassive
	}
	list, err := cmid.LookupAddrInfo(ctx, name, port, hints)
	if err != nil {
		return cmid.Addr{}, err
	}
	if passive {
		return list[0].Src, nil
	}
	return list[0].Dst, nil
}

// tellFirst has the device give up a peer that does not answer before a command does, whose time
// for it is timeout: the device knows how far the connection has come.
func tellFirst(timeout time.Duration) iwarp.Option {
	return func(c *iwarp.Config) { c.ReplyTimeout = min(c.ReplyTimeout, timeout*9/10) }
}

// announce tells the user of a choice that was left to the program.
func announce(c device.Choice, stderr io.Writer) {
	if c.Why != "" {
		fmt.Fprintln(stderr, c)
	}
}
