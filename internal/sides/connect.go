package sides

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// qpns is the last number for queue pairs that do not exist. Numbers are not reused, because a
// peer's kernel rejects a number that it got from this host a moment ago.
var qpns atomic.Uint32

func init() { qpns.Store(1<<22 | rand.Uint32N(1<<22)) }

// FreshQPN returns a queue pair number that no device here uses.
func FreshQPN() uint32 { return qpns.Add(1) }

// Listener makes a listener on an address of the passive side. Port 0 lets the device choose the
// port.
func (w *World) Listener(ps cmid.PortSpace, a cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.B.Bound(ps, a)
	w.Must(id.Listen(0))
	w.Port = id.SrcPort()
	return id
}

// Resolving makes an identifier of the active side and starts to resolve dst. It does not wait for
// the result.
func (w *World) Resolving(ps cmid.PortSpace, dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.A.Create(ps)
	w.Must(id.ResolveAddr(cmid.Addr{}, dst, time.Second))
	return id
}

// AddrResolved makes an identifier of the active side that has resolved dst.
func (w *World) AddrResolved(ps cmid.PortSpace, dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.Resolving(ps, dst)
	Next[*cmid.AddrResolved](w.A, id)
	return id
}

// Resolved makes an identifier of the active side that has resolved dst and the route to it.
func (w *World) Resolved(ps cmid.PortSpace, dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.AddrResolved(ps, dst)
	w.Must(id.ResolveRoute(time.Second))
	Next[*cmid.RouteResolved](w.A, id)
	return id
}

// Link is a connection with both queue pairs. Passive and BQ are nil until there is a request.
type Link struct {
	Listener, Active, Passive *cmid.ID
	AQ, BQ                    *Queues
}

// Requested starts a connection, and returns when the passive side has the request. The request is
// not answered.
func (w *World) Requested(recvs int, private []byte, param *cmid.ConnParam) (*Link, *cmid.ConnectRequest) {
	w.Helper()
	return w.requestLink(private, Setup{Recvs: recvs, Connect: param})
}

func (w *World) requestLink(private []byte, s Setup) (*Link, *cmid.ConnectRequest) {
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
	w.acceptLink(c, Setup{Recvs: recvs})
}

func (w *World) acceptLink(c *Link, s Setup) {
	w.Helper()
	c.BQ = w.queuesWith(c.Passive, s.Recvs, s.Passive)
	w.Must(c.Passive.Accept(nil, s.Accept))
	w.Established(c)
}

// Established waits until both sides are established.
func (w *World) Established(c *Link) {
	w.Helper()
	Next[*cmid.Established](w.A, c.Active)
	Next[*cmid.Established](w.B, c.Passive)
}

// Connected makes a connection with queue pairs on both sides.
func (w *World) Connected(recvs int) *Link {
	w.Helper()
	return w.ConnectedWith(Setup{Recvs: recvs})
}

// Setup describes how to make a connection.
type Setup struct {
	Recvs           int
	Connect, Accept *cmid.ConnParam
	// Active and Passive change the queue pairs' attributes.
	Active, Passive func(verbs.Device, *verbs.QPInitAttr)
}

// ConnectedWith makes a connection with queue pairs on both sides, as s specifies.
func (w *World) ConnectedWith(s Setup) *Link {
	w.Helper()
	c, _ := w.requestLink(nil, s)
	w.acceptLink(c, s)
	return c
}

// Disconnect disconnects the active side, and waits until both sides are disconnected. On
// InfiniBand the passive side answers.
func (w *World) Disconnect(c *Link) (active, passive *cmid.Disconnected) {
	w.Helper()
	w.Must(c.Active.Disconnect())
	return w.Disconnected(c)
}

// Answer answers the Disconnect of a peer. Only InfiniBand waits for an answer.
func (w *World) Answer(id *cmid.ID) {
	w.Helper()
	if !w.IWARP {
		w.Must(id.Disconnect())
	}
}

// Disconnected waits until both sides are disconnected, the passive one first. On InfiniBand the
// passive side answers.
func (w *World) Disconnected(c *Link) (active, passive *cmid.Disconnected) {
	w.Helper()
	passive = Next[*cmid.Disconnected](w.B, c.Passive)
	w.Answer(c.Passive)
	return Next[*cmid.Disconnected](w.A, c.Active), passive
}

// Limits returns the limits of the device with Address.
func (w *World) Limits() cmid.Limits {
	w.Helper()
	return Probe(w, (*cmid.ID).Limits)
}

// Pair makes a listener l, and an identifier id that has resolved the listener's address and the
// route to it.
func (w *World) Pair(ps cmid.PortSpace) (l, id *cmid.ID) {
	w.Helper()
	l = w.Listener(ps, Any4(0))
	return l, w.Resolved(ps, w.Target())
}

// Target returns an address that can be resolved.
func (w *World) Target() cmid.Addr { return At(w.Address, max(w.Port, 1)) }

// Reaches connects to dst, and returns the passive side's identifier when the request has arrived.
func (w *World) Reaches(dst cmid.Addr) *cmid.ID {
	w.Helper()
	w.Connecting(dst)
	child, _ := w.B.Request()
	return child
}

// Connecting makes an identifier with a queue pair, and sends a request to dst.
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
