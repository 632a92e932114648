package workload

import (
	"errors"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// defaultMaxMessage is IDConfig.MaxMessage, if nobody sets it. Half of the least receive memory
// that plans have is more than any that is set.
const defaultMaxMessage = 64 << 10

// sealing is how many bytes a sealed message has more, at most.
const sealing = 64

// firstSource is the first of the workload's ports that connections come from.
const firstSource = 10

// source is where a connection comes from; zero: the routing tables choose.
func (c *conn) source() rdma.Addr {
	switch c.spec.source {
	case fromPort:
		return rdma.MustAddr(c.w.e.Addr(c.machine, firstSource+c.number))
	case fromAddress:
		return rdma.MustAddr(c.w.e.IP(c.machine) + ":0")
	case fromAnywhere:
	}
	return rdma.Addr{}
}

// sourceKind says how much of its source a dial chooses.
type sourceKind int

const (
	fromAnywhere sourceKind = iota
	fromAddress
	fromPort // which no other connection uses
	sourceKinds
)

func (k sourceKind) String() string {
	return [...]string{"", " from its address", " from a port of its own"}[k]
}

// made judges how an end was made, by what it sends.
func (e *connEnd) made(ev rdma.Event) {
	switch ev := ev.(type) {
	case *rdma.Established:
		if !e.established {
			e.agreed(ev)
		}
	case rdma.Failure:
		e.refused(ev)
	}
}

// agreed judges what was agreed on. In a second attempt that is the same as in the first.
func (e *connEnd) agreed(ev *rdma.Established) {
	c := e.c
	env, to := c.w.e, c.spec.to
	// a responder that is late finds the Request when it goes on; an initiator has sent none
	excused := env.Obstructed(to) || env.hit(c.machine) || env.Broken(to) || env.AttackedTo(c.spec.listener, c.machine, to)
	if ev.Fallback != nil && !excused {
		env.World.Fail("%s: %s has connected in two attempts, and nobody was in its way: %v", env.Name, e.key, ev.Fallback)
	}
	want := c.idOf(1 - e.side).maxMessage
	if want == 0 {
		want = defaultMaxMessage
	}
	if half := c.w.e.Config.Limits.ReceiveMemory / 2; half > 0 && want > half {
		want = min(ev.MaxMessage, half) // memory is had in steps
	}
	if c.w.e.Security.Secured() && ev.MaxMessage < want && want <= ev.MaxMessage+sealing {
		want = ev.MaxMessage // the tag needs room, too, and there is none
	}
	if k := c.w.e.World.Kind(); (k == world.Embedded || k == world.Twin) && ev.MaxMessage != want {
		c.w.e.World.Fail("%s: %s may send %d bytes, and its peer takes %d", c.w.e.Name, e.key, ev.MaxMessage, want)
	}
}

// refused judges a failure of the side that dials.
func (e *connEnd) refused(f rdma.Failure) {
	c := e.c
	if e.side != 0 || e.established || c.disturbed() {
		return
	}
	if errors.Is(f, unix.EADDRNOTAVAIL) || errors.Is(f, unix.EADDRINUSE) {
		c.w.e.World.Fail("%s: %s has no port, dialled%v: %s", c.w.e.Name, e.key, c.spec.source, rdma.Brief(f))
	}
}
