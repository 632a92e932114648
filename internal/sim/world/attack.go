package world

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/internal/sim/network"
	"github.com/rdmactor/rdmactor/internal/sim/onpath"
)

// OnPath puts an attacker between all machines. It calls attacked when it has changed traffic from
// one address to another. Twins carry messages, not frames.
func (w *World) OnPath(attacked func(from, to netip.AddrPort)) {
	w.attacker = &onpath.Attacker{Rand: w.Rand("attacker"), Acted: func(f network.Flow, act onpath.Act) {
		w.Trace("somebody attacks %v > %v: act %d", f.From, f.To, act)
		attacked(f.From, f.To)
	}}
	if w.net != nil {
		w.net.OnPath(w.attacker)
		return
	}
	w.fabric.InterceptPassing(w.replaceMessage)
}

// replaceMessage returns the bytes that arrive instead of a twin's message.
func (w *World) replaceMessage(p cmidtest.Passing) []byte {
	kind := onpath.Send
	switch p.Message {
	case cmidtest.MsgREQ:
		kind = onpath.Request
	case cmidtest.MsgREP, cmidtest.MsgREJ:
		kind = onpath.Reply
	case cmidtest.MsgReadResponse:
		kind = onpath.Answer
	}
	if p.Local.Addr() == p.Peer.Addr() {
		return p.Bytes // traffic inside a machine is not visible to the attacker
	}
	return w.attacker.Message(network.Flow{Conn: uint64(p.Handle), From: p.Local.AddrPort, To: p.Peer.AddrPort}, kind, p.Bytes)
}

// Attack makes the attacker, if there is one, act on something that the machine sends or receives
// next.
func (m *Machine) Attack(act onpath.Act, r *rand.Rand) {
	if m.w.attacker == nil {
		return
	}
	m.w.attacker.Arm(act, r.IntN(4), func(f network.Flow) bool {
		return slices.ContainsFunc(m.addrs, func(a string) bool {
			ip := netip.MustParsePrefix(a).Addr()
			return ip == f.From.Addr() || ip == f.To.Addr()
		})
	})
}

// Disarm cancels the attacker's planned acts.
func (w *World) Disarm() {
	if w.attacker != nil {
		w.attacker.Disarm()
	}
}
