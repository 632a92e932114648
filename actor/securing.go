package actor

import (
	"bytes"
	"errors"
	"net/netip"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/states"
)

// unheard reports whether the owner knows nothing of the connection that the device has.
func (it *ident) unheard() bool { return it.hand != nil && !it.hand.decides }

// deciding reports whether an authenticated peer waits for the owner's decision.
func (it *ident) deciding() bool { return it.hand != nil && it.hand.decides }

// hello is what this side says of itself on a secured connection.
func (it *ident) hello(own secure.Features) wire.Hello {
	t := it.terms(datapath.ModeMessages)
	t.Features = uint8(own)
	return it.l.Hello(&t, it.id.Device().Attr())
}

// binding is what both sides have to see alike.
func (it *ident) binding(client, server Addr, hint uint32) secure.Binding {
	b := secure.Binding{Device: secure.DeviceInfiniBand, Hint: hint}
	if it.id.Flavor()&states.IWARP != 0 {
		b.Device = secure.DeviceIWARP
	}
	if !it.cfg.Security.NoAddresses {
		b.Client, b.Server = client.Addr(), netip.AddrPortFrom(server.Addr(), server.Port())
	}
	return b
}

// crowd counts a peer that is not authenticated. Another one may have to give way, on any loop. Not
// ok: there are too many, or too many from its address or network.
func (l *loop) crowd(in *incoming) (ok bool) {
	in.stranger = &limits.Stranger{From: in.r.Peer.Source()}
	evicted, ok := l.rt.strangers.Enter(in.stranger, l.rt.cfg.Limits.Handshakes, l.el.Now())
	if evicted != nil {
		evicted.Evict()
	}
	return ok
}

// uncrowd ends what crowd has begun.
func (it *ident) uncrowd() {
	if it.hand != nil && it.hand.in != nil {
		it.rt.strangers.Leave(it.hand.in.stranger)
	}
}

// awaitPeer notes that the handshake waits for the peer.
func (it *ident) awaitPeer() { it.rt.strangers.Wait(it.hand.in.stranger, it.l.el.Now()) }

// evicted: the message of a handshake to its identifier that it gives way to another one.
type evicted struct{}

func (*evicted) Lane() mailbox.Lane { return mailbox.Event }

// giveWay ends a handshake that has lost its place, unless it is done by now.
func (it *ident) giveWay() {
	if hand := it.hand; !it.unheard() || hand.in == nil || hand.came != nil || hand.first != nil || it.ending() {
		return
	}
	r := it.hand.in.r
	it.log.Warn("rdma: a peer that is not authenticated was rejected", "id", it.id.Handle(), "peer", r.Peer, "local", r.Local,
		"err", Brief(errCrowded))
	it.failShake(FailedCrowded, errCrowded)
	it.destroy(errCrowded)
}

// silent notes a peer that has not shown in time who it is.
func (it *ident) silent() {
	it.answered(fateUnauthenticated)
	r := it.hand.in.r
	it.log.Warn("rdma: a peer has not shown in time who it is", "id", it.id.Handle(), "peer", r.Peer, "local", r.Local)
}

// First is datapath.Identifier's.
func (it *ident) First(t wire.Type, body []byte) {
	if it.hand != nil {
		it.hand.came = &firstMessage{t, bytes.Clone(body)}
		it.box.PostUserMessage(it.hand.came)
	}
}

// endTLS ends the handshake, if there is one.
func (it *ident) endTLS() {
	if it.hand == nil || it.hand.tls == nil {
		return
	}
	h, cause := it.hand.tls, it.life.cause
	if cause == nil {
		cause = errEnded
	}
	if !h.End(cause) {
		return
	}
	it.rt.running.Add(1)
	it.rt.Scheduler().Go(func() {
		defer it.rt.running.Done()
		h.Close()
	})
}

// errEnded is why a handshake is given up whose identifier ends in order.
var errEnded = errors.New("the identifier was closed")
