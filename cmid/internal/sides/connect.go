package sides

import (
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// Create makes an identifier.
func (e *Side) Create(ps cmid.PortSpace) *cmid.ID {
	e.w.Helper()
	id, err := e.Ch.CreateID(ps)
	e.w.Must(err)
	return id
}

// qpns numbers queue pairs that are not there. The kernel of a peer rejects a number that it had
// from this host a moment ago.
var qpns atomic.Uint32

func init() { qpns.Store(1<<22 | rand.Uint32N(1<<22)) }

// FreshQPN is the number of a queue pair that no device here has.
func FreshQPN() uint32 { return qpns.Add(1) }

// At is an address and a port.
func At(ip netip.Addr, port uint16) cmid.Addr { return cmid.AddrFrom(ip, port) }

// Any4 is the IPv4 wildcard.
func Any4(port uint16) cmid.Addr { return cmid.AddrFrom(netip.IPv4Unspecified(), port) }

// Bound makes an identifier and binds it.
func (e *Side) Bound(ps cmid.PortSpace, a cmid.Addr) *cmid.ID {
	e.w.Helper()
	id := e.Create(ps)
	e.w.Must(id.BindAddr(a))
	return id
}

// Listener listens on a port of the passive side; port 0 lets the device choose.
func (w *World) Listener(ps cmid.PortSpace, a cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.B.Bound(ps, a)
	w.Must(id.Listen(0))
	w.Port = id.SrcPort()
	return id
}

// Resolved makes an identifier that has resolved Address and a port, and the route to it.
func (w *World) Resolved(ps cmid.PortSpace, dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.A.Create(ps)
	w.Must(id.ResolveAddr(cmid.Addr{}, dst, time.Second))
	Next[*cmid.AddrResolved](w.A, id)
	w.Must(id.ResolveRoute(time.Second))
	Next[*cmid.RouteResolved](w.A, id)
	return id
}

// Link is a connection, with both queue pairs. Passive and BQ are nil as long as it has not come so
// far.
type Link struct {
	Listener, Active, Passive *cmid.ID
	AQ, BQ                    *Queues
}

// Requested connects as far as the request: the passive side has it, and has not answered.
func (w *World) Requested(recvs int, private []byte, param *cmid.ConnParam) (*Link, *cmid.ConnectRequest) {
	w.Helper()
	c := &Link{Listener: w.Listener(cmid.PortSpaceTCP, Any4(0))}
	c.Active = w.Resolved(cmid.PortSpaceTCP, At(w.Address, w.Port))
	c.AQ = w.Queues(c.Active, recvs)
	w.Must(c.Active.Connect(private, param))
	var ev *cmid.ConnectRequest
	c.Passive, ev = w.B.Request()
	return c, ev
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
	c := &Link{Listener: w.Listener(cmid.PortSpaceTCP, Any4(0))}
	c.Active = w.Resolved(cmid.PortSpaceTCP, At(w.Address, w.Port))
	c.AQ = w.queuesWith(c.Active, s.Recvs, s.Active)
	w.Must(c.Active.Connect(nil, s.Connect))
	c.Passive, _ = w.B.Request()
	c.BQ = w.queuesWith(c.Passive, s.Recvs, s.Passive)
	w.Must(c.Passive.Accept(nil, s.Accept))
	Next[*cmid.Established](w.A, c.Active)
	Next[*cmid.Established](w.B, c.Passive)
	return c
}

// Limits are those of the device with Address.
func (w *World) Limits() cmid.Limits {
	w.Helper()
	id := w.B.Bound(cmid.PortSpaceTCP, At(w.Address, 0))
	lim := id.Limits()
	w.Must(id.Destroy())
	w.B.Heard = nil
	return lim
}

// Target is an address that resolves.
func (w *World) Target() cmid.Addr { return At(w.Address, max(w.Port, 1)) }

// Reaches connects to dst as far as the request.
func (w *World) Reaches(dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.Resolved(cmid.PortSpaceTCP, dst)
	w.Queues(id, 0)
	w.Must(id.Connect(nil, nil))
	child, _ := w.B.Request()
	return child
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
	d, err := id.Detach()
	w.Must(err)
	if w.B.Ch.ID(id.Handle()) != nil {
		w.Error("the identifier is still the old channel's")
	}
	return d
}
