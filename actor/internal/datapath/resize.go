package datapath

import (
	"net/netip"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// A receive that is posted beforehand costs its memory also while nothing comes. So where larger
// messages can be offered, the receives of a connection hold EagerPosted only while the peer has
// messages for them:
//
//   - A side that was asked for the connection knows its peer, and begins with the smallest.
//   - When the peer offers a message that the largest receives would hold, they become as large.
//     Those that are posted stay: each small one that was used is replaced by a large one. Receives
//     are used in order, so the peer is notified from which of its Sends on they are large. The
//     memory for all of them is taken before, so the word can be kept. If there is none, they stay
//     small, and messages are offered.
//   - After looksIdle looks (keepalive.go) without such a message they become small again. The peer
//     is notified, and only when it has answered the small ones replace those that were used. Where
//     there is no memory for a small one, the large one is posted again.
//
// Large receives are taken from what receives leave of their memory, all but a quarter of it, so
// that more connections can begin. One peer address gets at most as much of that as it leaves.

// LeastPosted is the size, in bytes, of the smallest receives.
const LeastPosted = 1 << 10

// leastTLS is the least in TLS mode until the handshake is done: its frames have to fit into a few
// receives.
const leastTLS = 4 << 10

// resizing is a connection's receives, which change their size. Sizes are those of their memory. A
// nil resizing is that of receives that keep their size.
type resizing struct {
	c      *Conn
	count  int         // receives, posted or with the owner
	holds  int         // bytes of the largest message that they are to hold
	most   int         // and of the largest that they ever hold
	large  int         // the size of those
	small  int         // how many are smaller
	bytes  int         // all receives' bytes
	posted uint32      // since the beginning
	from   uint32      // those posted from this number on are large
	joined []*recvPool // pools that it may have receives of
	aside  []*memory.Chunk
	asked  bool // they are to become small, and the peer has not answered
	used   bool // since the last look the peer sent a message that small ones do not hold
	quiet  int  // looks since there was one
	offers bool // the peer can offer what small ones do not hold
	source netip.Addr
	share  int // bytes of source's share
}

// canResize reports whether the receives of such a connection change their size.
func (l *Loop) canResize(t *Terms, attr *verbs.DeviceAttr) bool {
	return !attr.AsksForReceives && t.Mode == ModeMessages && t.Reads && t.Eager == 0 && l.largestReceive(t, attr) > LeastPosted
}

// isActive reports whether this side has asked for the connection. The messages that it may send
// are not known when its receives are posted, nor whether its peer can offer any.
func (t *Terms) isActive() bool { return t.Peer.Version == 0 }

// initialSize returns the initial size of receives in bytes, of which they may have most.
func (t *Terms) initialSize(most int) int {
	switch {
	case t.isActive():
		return most
	case t.usesTLS():
		return min(leastTLS, most)
	}
	return LeastPosted
}

// initResizing begins the account of c's receives, n of them, before they are posted.
func (in *intake) initResizing(n int) {
	if !in.c.l.canResize(&in.c.terms, &in.c.Device.attr) || !in.c.res.dom.own {
		return
	}
	most := in.c.l.largestReceive(&in.c.terms, &in.c.Device.attr)
	in.resize = &resizing{
		c: in.c, count: n, holds: in.c.Out.sizes.direct, most: most, large: poolSize(most + in.c.terms.perMessage()), bytes: n * in.pool.Arena.Size(),
		joined: []*recvPool{in.pool}, offers: !in.c.terms.isActive(), source: in.c.ID.PeerAddr().Source(),
	}
	if in.c.Out.sizes.direct < most {
		in.resize.small = n
	}
}

// Offered notes that the peer can offer messages. The side that was asked knows that from the
// beginning.
func (c *Conn) Offered() {
	if c.In.resize != nil {
		c.In.resize.offers = true
	}
}

// poolOf joins and returns the pool of receives for messages of n bytes. An error: there is none.
func (r *resizing) poolOf(n int) (*recvPool, error) {
	n += r.c.terms.perMessage()
	for _, p := range r.joined {
		if p.Arena.Size() == poolSize(n) {
			return p, nil
		}
	}
	p, err := r.c.res.dom.recvPool(n)
	if err == nil {
		p.Arena.InOne(r.count)
		r.joined = append(r.joined, p)
	}
	return p, err
}

// noteDemand notes that the peer sent or offered a message of n bytes.
func (r *resizing) noteDemand(n int, offered bool) {
	if r == nil || n <= LeastPosted || n > r.most {
		return
	}
	r.used = true
	if offered && r.holds < r.most {
		r.growReceives()
	}
}

// growReceives makes the receives large.
func (r *resizing) growReceives() {
	if !r.mayAnnounce() {
		return
	}
	p, err := r.poolOf(r.most)
	n, before := r.count*r.large, r.c.In.person.promised
	if err != nil || r.share == 0 && r.c.l.largeReceives.Has(r.source)+n > r.c.l.RecvBudget.Spare() || !r.c.In.person.setPromise(r.c.l, n) {
		return
	}
	if !r.takeReplacement(p) {
		r.returnAside()
		r.c.In.person.setPromise(r.c.l, before)
		return
	}
	if r.share == 0 {
		r.share = n
		r.c.l.largeReceives.Add(r.source, n)
	}
	r.holds, r.c.In.pool = r.most, p
}

// takeReplacement takes all the memory that the small receives will be replaced by, and notifies
// the peer.
func (r *resizing) takeReplacement(p *recvPool) (ok bool) {
	for len(r.aside) < r.small {
		b, err := p.Arena.Get()
		if err != nil {
			return false
		}
		p.aside++
		r.aside = append(r.aside, b)
	}
	return r.announceSize(wire.Receives{From: r.from, Size: uint32(r.most)})
}

// shrinkIfUnused asks to shrink the receives if the peer has not needed large ones.
func (r *resizing) shrinkIfUnused() {
	if r == nil || r.holds == LeastPosted {
		return
	}
	if r.quiet++; r.used {
		r.used, r.quiet = false, 0
	}
	if r.quiet >= looksIdle && !r.asked && r.mayAnnounce() && r.offers {
		r.asked = r.announceSize(wire.Receives{Size: LeastPosted})
	}
}

// shrinkReceives makes the receives small, if the peer has answered.
func (r *resizing) shrinkReceives() {
	if r == nil || !r.asked || r.c.Session.Resizing() {
		return
	}
	r.asked = false
	p, err := r.poolOf(LeastPosted)
	if err != nil {
		return // they hold more than the peer sends
	}
	r.holds, r.c.In.pool = LeastPosted, p
	r.returnAside()
	r.updateAccount()
	r.c.res.dom.sinks.Reclaim() // nor does it keep memory for the next large message
}

// updateAccount updates the account of receives that become small. Other connections of the domain
// may have receives of any size.
func (r *resizing) updateAccount() {
	r.c.In.person.setPromise(r.c.l, r.bytes)
	if r.small == r.count {
		r.c.l.largeReceives.Add(r.source, -r.share)
		r.share = 0
	}
}

// mayAnnounce reports whether the peer can be notified now that the receives have another size.
func (r *resizing) mayAnnounce() bool {
	return r.c.mayPost() && !r.c.Session.Resizing() && !r.c.Sec.Owes() && !r.c.Out.offers.isSealing() && r.c.Out.Flight.hasRoom()
}

// announceSize notifies the peer. Not ok: the device has not taken the message.
func (r *resizing) announceSize(to wire.Receives) (ok bool) {
	var b [wire.HeaderLen + wire.ReceivesLen]byte
	r.c.Session.Header(wire.TypeReceives, 0).Put(b[:])
	to.Put(b[wire.HeaderLen:])
	if r.c.Device.postMessage(r.c, nil, b[:], false) != nil {
		return false // there will be another occasion
	}
	r.c.Session.Sent(wire.TypeReceives, 0)
	return true
}

// returnAside returns the memory that was to replace small receives.
func (r *resizing) returnAside() {
	if r == nil {
		return
	}
	for _, b := range r.aside {
		r.c.res.poolOf(b).aside--
		b.Free()
	}
	r.aside = nil
}

// leavePools ends the use of the pools by a connection that has gone.
func (in *intake) leavePools() {
	r := in.resize
	if r == nil {
		in.pool.removeConn()
		return
	}
	for _, p := range r.joined {
		p.removeConn()
	}
	in.c.l.largeReceives.Add(r.source, -r.share)
	r.share = 0
}

// postRecv posts a receive, or its replacement.
func (in *intake) postRecv(b *memory.Chunk) error {
	r := in.resize
	p := in.pool
	if r != nil && b.Size() != p.Arena.Size() {
		b, p = r.exchangeReceive(b)
	}
	if err := p.postReceive(in.c.QP, b); err != nil {
		b.Free()
		return err
	}
	if r != nil {
		if r.posted++; b.Size() < r.large {
			r.from = r.posted
		}
	}
	return nil
}

// exchangeReceive returns the receive to be posted instead of b, which does not have the current
// size.
func (r *resizing) exchangeReceive(b *memory.Chunk) (*memory.Chunk, *recvPool) {
	old := r.c.res.poolOf(b)
	var next *memory.Chunk
	if last := len(r.aside) - 1; last >= 0 {
		next, r.aside = r.aside[last], r.aside[:last]
		r.c.In.pool.aside--
	} else {
		var err error
		if next, err = r.c.In.pool.Arena.Get(); err != nil {
			return b, old
		}
	}
	r.small += smallCount(next, r) - smallCount(b, r)
	r.bytes += next.Size() - b.Size()
	b.Free()
	if r.holds == LeastPosted {
		r.updateAccount()
	}
	return next, r.c.In.pool
}

// smallCount returns 1 if b is no large receive, and 0 otherwise.
func smallCount(b *memory.Chunk, r *resizing) int {
	if b.Size() < r.large {
		return 1
	}
	return 0
}
