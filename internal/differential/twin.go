package differential

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// Twin is the in-memory device: one host, which has a device with two addresses and an address
// without a device. A further address is silent.
func Twin(name string, cfg cmidtest.Config) Side {
	cfg.Seed = 7
	return Side{Name: name, Open: func() (Rig, error) {
		f := cmidtest.NewFabric(cfg)
		f.AddDevice("mem0", "10.0.0.5", "10.0.0.6")
		f.Host("").AddAddress("192.168.1.1")
		return Rig{
			Driver:  f.Driver(),
			Clock:   eventlooptest.NewClock(time.Unix(1_700_000_000, 0)),
			Address: netip.MustParseAddr("10.0.0.5"), Second: netip.MustParseAddr("10.0.0.6"),
			Plain:   netip.MustParseAddr("192.168.1.1"),
			Foreign: netip.MustParseAddr("203.0.113.77"),
			NoARP:   netip.MustParseAddr("10.0.0.98"),
			NoRoute: netip.MustParseAddr("2001:db8::1"),
			Ports:   [2]uint16{7471, 7472},
		}, nil
	}}
}

// FreePorts finds two ports that no socket of this host uses. They are below the range of automatic
// ports.
func FreePorts() (ports [2]uint16, err error) {
	const low, n, tries = 10000, 20000, 64
	for found, try := 0, 0; found < len(ports); try++ {
		port := uint16(low + rand.IntN(n))
		l, err := net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", port))
		switch {
		case err == nil:
			defer func() { _ = l.Close() }() // not before, so that the two ports differ
			ports[found] = port
			found++
		case try > tries:
			return ports, err
		}
	}
	return ports, nil
}
