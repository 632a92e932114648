package network_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sim/network"
	"github.com/rdmactor/rdmactor/internal/sockets/conformance"
)

// process is a simulated process.
type process struct {
	*network.Stack
	p *network.Process
}

func (p *process) Ready(fd int) eventloop.Events { return p.p.Ready(fd) }

// exhaust opens sockets until no descriptors are left.
func (p *process) exhaust() (restore func()) {
	var open []int
	for {
		fd, err := p.Socket(unix.AF_INET, unix.SOCK_STREAM)
		if err != nil {
			break
		}
		open = append(open, fd)
	}
	return func() {
		for _, fd := range open {
			_ = p.Close(fd) // it is open
		}
		open = nil
	}
}

// clock is the network's time. It advances when nothing is due.
type clock struct {
	net *network.Network
	now time.Time
	rng *rand.Rand
}

func newClock(seed uint64, cfg network.Config) *clock {
	c := &clock{now: time.Unix(1e9, 0), rng: rand.New(rand.NewPCG(seed, 3))}
	cfg.Now, cfg.Rand = func() time.Time { return c.now }, c.rng
	c.net = network.New(cfg)
	return c
}

// wait runs an event, or lets a little time pass until there is one.
func (c *clock) wait() bool {
	if _, ok := c.net.Next(); !ok {
		return false
	}
	if n := c.net.Due(c.now); n > 0 {
		c.net.Step(c.rng.IntN(n))
	} else {
		c.now = c.now.Add(50 * time.Millisecond)
	}
	return true
}

// TestItIsLikeLinux checks the facts that hold on Linux: on one machine as the loopback test on
// Linux does, and between two machines.
func TestItIsLikeLinux(t *testing.T) {
	machine := func(c *clock, name, last string) *network.Machine {
		return c.net.Machine(name, netip.MustParsePrefix("10.0.0."+last+"/24"), netip.MustParsePrefix("fd00::"+last+"/64"))
	}
	for name, cfg := range map[string]network.Config{
		"perfect": {},
		"cut":     {Short: 0.5},
		"slow":    {Short: 0.2, Link: network.Link{Delay: 30 * time.Millisecond, Jitter: 20 * time.Millisecond, MSS: 1460}},
	} {
		t.Run(name+", one process", func(t *testing.T) {
			conformance.Run(t, func(*testing.T) *conformance.Pair {
				c := newClock(1, cfg)
				p := machine(c, "a", "1").Process(network.Limits{Files: 64})
				one := &process{p.Stack(), p}
				return &conformance.Pair{
					Client: one, Server: one, Exhaust: one.exhaust,
					Address: netip.MustParseAddr("127.0.0.1"), Source: netip.MustParseAddr("127.0.0.1"),
					Second: netip.MustParseAddr("127.0.0.2"), Address6: netip.IPv6Loopback(),
					Foreign: netip.MustParseAddr("203.0.113.77"), NoRoute: netip.MustParseAddr("203.0.113.77"),
					Broadcast: netip.MustParseAddr("127.255.255.255"), Wait: c.wait,
				}
			})
		})
		t.Run(name+", two machines", func(t *testing.T) {
			conformance.Run(t, func(*testing.T) *conformance.Pair {
				c := newClock(2, cfg)
				a, b := machine(c, "a", "1"), machine(c, "b", "2")
				b.AddAddr(netip.MustParsePrefix("10.0.0.3/24"))
				pa, pb := a.Process(network.Limits{}), b.Process(network.Limits{Files: 64})
				server := &process{pb.Stack(), pb}
				return &conformance.Pair{
					Client: &process{pa.Stack(), pa}, Server: server, Exhaust: server.exhaust,
					Address: netip.MustParseAddr("10.0.0.2"), Source: netip.MustParseAddr("10.0.0.1"),
					Second: netip.MustParseAddr("10.0.0.3"), Address6: netip.MustParseAddr("fd00::2"),
					Foreign: netip.MustParseAddr("203.0.113.77"), NoRoute: netip.MustParseAddr("2001:db8::1"),
					Broadcast: netip.MustParseAddr("10.0.0.255"), Wait: c.wait,
				}
			})
		})
	}
}
