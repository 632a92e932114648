package sides

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// qpns numbers queue pairs that do not exist. A peer's kernel rejects a number that it had from
// this host a moment ago.
var qpns atomic.Uint32

func init() { qpns.Store(1<<22 | rand.Uint32N(1<<22)) }

// FreshQPN is the number of a queue pair that no device here has.
func FreshQPN() uint32 { return qpns.Add(1) }

// Listener listens on a port of the passive side; port 0 lets the device choose.
func (w *World) Listener(ps cmid.PortSpace, a cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.B.Bound(ps, a)
	w.Must(id.Listen(0))
	w.Port = id.SrcPort()
	return id
}

// Resolving makes an identifier of the active side that resolves an address.
func (w *World) Resolving(ps cmid.PortSpace, dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.A.Create(ps)
	w.Must(id.ResolveAddr(cmid.Addr{}, dst, time.Second))
	return id
}

// AddrResolved makes an identifier that has resolved an address.
func (w *World) AddrResolved(ps cmid.PortSpace, dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.Resolving(ps, dst)
	Next[*cmid.AddrResolved](w.A, id)
	return id
}

// Resolved makes an identifier that has resolved an address and the route to it.
func (w *World) Resolved(ps cmid.PortSpace, dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.AddrResolved(ps, dst)
	w.Must(id.ResolveRoute(time.Second))
	Next[*cmid.RouteResolved](w.A, id)
	return id
}

// Link is a connection, with both queue pairs. Passive and BQ are nil until there is a request.
type Link struct {
	Listener, Active, Passive *cmid.ID
	AQ, BQ                    *Queues
}

// Requested connects as far as the request, which the passive side has not answered.
func (w *World) Requested(recvs int, private []byte, param *cmid.ConnParam) (*Link, *cmid.ConnectRequest) {
	w.Helper()
	return w.request(private, Setup{Recvs: recvs, Connect: param})
}

func (w *World) request(private []byte, s Setup) (*Link, *cmid.ConnectRequest) {
	w.Helper()
	c := &Link{}
	c.Listener, c.Active = w.Pair(cmid.PortSpaceTCP)
	c.AQ = w.queuesWith(c.Active, s.Recvs, s.Active)
	w.Must(c.Active.Connect(private, s.Connect))
	var ev *cmid.ConnectRequest
	c.Passive, ev = w.B.Request()
	return c, ev
}

// Accept accepts a request, with a queue pair, and waits until both sides are established.
func (w *World) Accept(c *Link, recvs int) {
	w.Helper()
	w.accept(c, Setup{Recvs: recvs})
}

func (w *World) accept(c *Link, s Setup) {
	w.Helper()
	c.BQ = w.queuesWith(c.Passive, s.Recvs, s.Passive)
	w.Must(c.Passive.Accept(nil, s.Accept))
	w.Established(c)
}

// Established waits until both sides are.
func (w *World) Established(c *Link) {
	w.Helper()
	Next[*cmid.Established](w.A, c.Active)
	Next[*cmid.Established](w.B, c.Passive)
}

// Connected connects, with queue pairs on both sides.
func (w *World) Connected(recvs int) *Link {
	w.Helper()
	return w.ConnectedWith(Setup{Recvs: recvs})
}

// Setup is how a connection is made.
type Setup struct {
	Recvs           int
	Connect, Accept *cmid.ConnParam
	// Active and Passive change the queue pairs' attributes.
	Active, Passive func(verbs.Device, *verbs.QPInitAttr)
}

// ConnectedWith connects, with queue pairs on both sides.
func (w *World) ConnectedWith(s Setup) *Link {
	w.Helper()
	c, _ := w.request(nil, s)
	w.accept(c, s)
	return c
}

// Disconnect has the active side disconnect, and waits until both sides are disconnected. On
// InfiniBand the passive side answers.
func (w *World) Disconnect(c *Link) (active, passive *cmid.Disconnected) {
	w.Helper()
	w.Must(c.Active.Disconnect())
	return w.Disconnected(c)
}

// Answer answers a peer's Disconnect. Only InfiniBand waits for that.
func (w *World) Answer(id *cmid.ID) {
	w.Helper()
	if !w.IWARP {
		w.Must(id.Disconnect())
	}
}

// Disconnected waits until both sides are, the passive one first. On InfiniBand the passive side
// answers.
func (w *World) Disconnected(c *Link) (active, passive *cmid.Disconnected) {
	w.Helper()
	passive = Next[*cmid.Disconnected](w.B, c.Passive)
	w.Answer(c.Passive)
	return Next[*cmid.Disconnected](w.A, c.Active), passive
}

// Limits are those of the device with Address.
func (w *World) Limits() cmid.Limits {
	w.Helper()
	return Probe(w, (*cmid.ID).Limits)
}

// Pair listens, and makes an identifier that has resolved the listener's address and the route to
// it.
func (w *World) Pair(ps cmid.PortSpace) (l, id *cmid.ID) {
	w.Helper()
	l = w.Listener(ps, Any4(0))
	return l, w.Resolved(ps, w.Target())
}

// Target is an address that resolves.
func (w *World) Target() cmid.Addr { return At(w.Address, max(w.Port, 1)) }

// Reaches connects to dst as far as the request.
func (w *World) Reaches(dst cmid.Addr) *cmid.ID {
	w.Helper()
	w.Connecting(dst)
	child, _ := w.B.Request()
	return child
}

// Connecting makes an identifier with a queue pair that has sent a request to dst.
func (w *World) Connecting(dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.Resolved(cmid.PortSpaceTCP, dst)
	w.Queues(id, 0)
	w.Must(id.Connect(nil, nil))
	return id
}

// Migrate moves an identifier to the side's other channel.
func (w *World) Migrate(e *Side, id *cmid.ID) {
	w.Helper()
	w.Must(id.Migrate(e.Other()))
	if e.Ch.ID(id.Handle()) != nil || e.Extra.ID(id.Handle()) != id {
		w.Error("the identifier is not the new channel's alone")
	}
}

// Detach takes a request's identifier off the passive side's channel.
func (w *World) Detach(id *cmid.ID) *cmid.Detached {
	w.Helper()
	d := Got(id.Detach())(w)
	if w.B.Ch.ID(id.Handle()) != nil {
		w.Error("the identifier is still the old channel's")
	}
	return d
}
