package swarm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/workload"
)

// drawConfig draws limits and times: small ones, and the defaults.
func drawConfig(r *rand.Rand, kind world.Kind) (c rdma.Config) {
	c.Loops = make([]eventloop.Config, 1+r.IntN(3))
	l := &c.Limits
	least := 1 << 20
	if kind == world.TwinSoftRoCE || kind == world.TwinSIW {
		least = 8 << 20 // there each connection needs 0.7 MiB from its beginning
	}
	for _, x := range []struct {
		to        *int
		low, high int
	}{
		{&l.Connections, 4, 64},
		{&l.PendingRequests, 1, 16},
		{&l.SendQueue, 1, 32},
		{&l.Mailbox, 4, 128},
		{&l.ReceiveMemory, least, 64 << 20},
		{&l.SendMemory, 1 << 20, 64 << 20},
		{&l.Memory, 1 << 16, 16 << 20},
	} {
		if n := drawBetween(r, x.low, x.high); r.IntN(3) == 0 {
			*x.to = n
		}
	}
	t := &c.Timeouts
	for _, to := range []*time.Duration{&t.Address, &t.Route, &t.Connect, &t.Request, &t.Close} {
		if d := drawBetween(r, 500*time.Millisecond, 10*time.Second); r.IntN(5) == 0 {
			*to = d
		}
	}
	if idle := drawBetween(r, time.Second, 30*time.Second); r.IntN(3) == 0 {
		c.Keepalive = rdma.Keepalive{Idle: idle, Gone: 3 * idle}
	}
	return c
}

// drawSecurity draws how connections are secured. A third of the worlds are secured, most of them
// with keys.
func drawSecurity(r *rand.Rand) (s workload.Security) {
	if r.IntN(3) > 0 {
		return s
	}
	s.Mode, s.OneSided = rdma.PSK, r.IntN(3) == 0
	if r.IntN(4) == 0 {
		s.Mode = rdma.TLS
	}
	return s
}

// limitsText lists the values that are not defaults.
func limitsText(c rdma.Config) string {
	all := []string{fmt.Sprintf("loops: %d", len(c.Loops))}
	add := func(name string, value any, drawn bool) {
		if drawn {
			all = append(all, fmt.Sprintf("%s: %v", name, value))
		}
	}
	l, t := c.Limits, c.Timeouts
	add("connections", l.Connections, l.Connections != 0)
	add("pending requests", l.PendingRequests, l.PendingRequests != 0)
	add("send queue", l.SendQueue, l.SendQueue != 0)
	add("mailbox", l.Mailbox, l.Mailbox != 0)
	add("receive memory", l.ReceiveMemory, l.ReceiveMemory != 0)
	add("send memory", l.SendMemory, l.SendMemory != 0)
	add("memory", l.Memory, l.Memory != 0)
	add("address", t.Address, t.Address != 0)
	add("route", t.Route, t.Route != 0)
	add("connect", t.Connect, t.Connect != 0)
	add("request", t.Request, t.Request != 0)
	add("close", t.Close, t.Close != 0)
	add("keepalive", c.Keepalive, c.Keepalive.Idle != 0)
	return strings.Join(all, ", ")
}
