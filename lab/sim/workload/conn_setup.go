package workload

import (
	"errors"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// defaultMaxMessage is the default of IDConfig.MaxMessage. Half of the smallest receive memory in
// plans is more than any that is set.
const defaultMaxMessage = 64 << 10

// sealing is the maximum overhead of a sealed message in bytes.
const sealing = 64

// firstSource is the first source port among the workload's ports.
const firstSource = 10

// sourceAddr returns the source address of a connection; zero: the routing tables choose.
func (c *conn) sourceAddr() rdma.Addr {
	switch c.spec.source {
	case fromPort:
		return rdma.MustAddr(c.w.e.Addr(c.machine, firstSource+c.number))
	case fromAddress:
		return rdma.MustAddr(c.w.e.IP(c.machine) + ":0")
	case fromAnywhere:
	}
	return rdma.Addr{}
}

// sourceKind is how much of its source a dial specifies.
type sourceKind int

const (
	fromAnywhere sourceKind = iota
	fromAddress
	fromPort // used by no other connection
	sourceKinds
)

func (k sourceKind) String() string {
	return [...]string{"", " from its address", " from a port of its own"}[k]
}

// judgeSetUp judges the set-up of an end by the events that it sends.
func (e *connEnd) judgeSetUp(ev rdma.Event) {
	switch ev := ev.(type) {
	case *rdma.Established:
		if !e.established {
			e.judgeTerms(ev)
		}
	case rdma.Failure:
		e.judgeFailure(ev)
	}
}

// judgeTerms judges the negotiated values. A second attempt must agree on the same values as the
// first.
func (e *connEnd) judgeTerms(ev *rdma.Established) {
	c := e.c
	env, to := c.w.e, c.spec.to
	// a late responder finds the Request when it continues; an initiator has sent none
	excused := env.Obstructed(to) || env.wasHit(c.machine) || env.Broken(to) || env.AttackedTo(c.spec.listener, c.machine, to)
	if ev.Fallback != nil && !excused {
		env.failWorld("%s has connected in two attempts, and nobody was in its way: %v", e.key, ev.Fallback)
	}
	want := c.idOf(1 - e.side).maxMessage
	if want == 0 {
		want = defaultMaxMessage
	}
	if half := c.w.e.Config.Limits.ReceiveMemory / 2; half > 0 && want > half {
		want = min(ev.MaxMessage, half) // memory is allocated in steps
	}
	if c.w.e.Security.Secured() && ev.MaxMessage < want && want <= ev.MaxMessage+sealing {
		want = ev.MaxMessage // the tag also needs room, and there is none
	}
	if k := c.w.e.World.Kind(); (k == world.Embedded || k == world.Twin) && ev.MaxMessage != want {
		c.w.e.failWorld("%s may send %d bytes, and its peer takes %d", e.key, ev.MaxMessage, want)
	}
}

// judgeFailure judges a failure of the dialling side.
func (e *connEnd) judgeFailure(f rdma.Failure) {
	c := e.c
	if e.side != 0 || e.established || c.isDisturbed() {
		return
	}
	if errors.Is(f, unix.EADDRNOTAVAIL) || errors.Is(f, unix.EADDRINUSE) {
		c.w.e.failWorld("%s has no port, dialled%v: %s", e.key, c.spec.source, rdma.Brief(f))
	}
}
