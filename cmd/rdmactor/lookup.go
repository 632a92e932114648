package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/device"
)

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

// announce tells the user of a choice that was left to the program.
func announce(c device.Choice, stderr io.Writer) {
	if c.Why != "" {
		fmt.Fprintln(stderr, c)
	}
}
