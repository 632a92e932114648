package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
)

// spoil sets byte i.
func spoil(b []byte, i int, v byte) []byte {
	b[i] = v
	return b
}

// asks is an exchange that sends a frame (MPA's first) and waits.
func asks(make func(p *Peer) []byte) func(*Peer) { return func(p *Peer) { p.write(make(p)) } }

// plain is the Request that is right.
func plain(p *Peer) []byte { return p.request(wire.FlagEnhanced, 2, control, nil) }

// p2p is a control word that asks for peer-to-peer with that RTR.
func p2p(write, read bool) wire.Control {
	return wire.Control{PeerToPeer: true, RTRWrite: write, RTRRead: read, IRD: Depth, ORD: Depth}
}

var (
	ignored  = Want{Told: Nothing}
	rejected = Want{Told: Nothing, Reject: true}
	tooEarly = Want{Told: ConnectError, Errno: unix.ECONNRESET}
)

// requests is what an initiator may do wrong in set-up (iwarp.md sections 2 and 11).
var requests = []Exchange{
	{Name: "nothing, then FIN", Rule: "RFC 5044 7.1.2", Side: Dials, raw: true, Want: ignored, run: (*Peer).fin},
	{Name: "nothing, then reset", Rule: "RFC 5044 7.1.2", Side: Dials, raw: true, Want: ignored, run: (*Peer).reset},
	{
		Name: "HTTP", Rule: "RFC 5044 7.1.1: key", Side: Dials, raw: true, Want: ignored,
		run: asks(func(*Peer) []byte { return []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }),
	},
	{
		Name: "zeros", Rule: "RFC 5044 7.1.1: key", Side: Dials, raw: true, Want: ignored,
		run: asks(func(*Peer) []byte { return zeros(4096) }),
	},
	{
		Name: "key wrong in its last byte", Rule: "RFC 5044 7.1.1: key", Side: Dials, raw: true, Want: ignored,
		run: asks(func(p *Peer) []byte { return spoil(plain(p), 15, 'f') }),
	},
	{
		Name: "Reply instead of a Request", Rule: "RFC 5044 7.1.1: key", Side: Dials, raw: true, Want: ignored,
		run: asks(func(p *Peer) []byte {
			return wire.AppendFrame(nil, &wire.Frame{Reply: true, Flags: wire.FlagEnhanced, Revision: 2, Control: control})
		}),
	},
	{
		Name: "Request of revision 3", Rule: "RFC 6581 5: revision", Side: Dials, raw: true, Want: ignored,
		run: asks(func(p *Peer) []byte { return p.request(wire.FlagEnhanced, 3, control, nil) }),
	},
	{
		Name: "Request of revision 255", Rule: "RFC 6581 5: revision", Side: Dials, raw: true, Want: ignored,
		run: asks(func(p *Peer) []byte { return p.request(0, 255, control, nil) }),
	},
	{
		Name: "Request that demands markers", Rule: "RFC 5044 7.1.1: M", Side: Dials, raw: true, Want: rejected,
		run: asks(func(p *Peer) []byte { return p.request(wire.FlagEnhanced|wire.FlagMarkers, 2, control, nil) }),
	},
	{
		Name: "Request without room for its control word", Rule: "RFC 6581 5: S and PD_Length 0", Side: Dials, raw: true, Want: rejected,
		run: asks(func(p *Peer) []byte { return spoil(plain(p), 19, 0)[:20] }),
	},
	{
		Name: "Request with 3 bytes for its control word", Rule: "RFC 6581 5: S and PD_Length 3", Side: Dials, raw: true, Want: rejected,
		run: asks(func(p *Peer) []byte { return spoil(plain(p), 19, 3)[:23] }),
	},
	{
		Name: "Request with 513 bytes of private data", Rule: "RFC 5044 7.1.1: PD_Length", Side: Dials, raw: true, Want: ignored,
		run: asks(func(p *Peer) []byte { return p.request(0, 1, control, zeros(513)) }),
	},
	{
		Name: "Request with 65535 bytes of private data", Rule: "RFC 5044 7.1.1: PD_Length", Side: Dials, raw: true, Want: ignored,
		run: asks(func(p *Peer) []byte { return p.request(0, 1, control, zeros(65535)) }),
	},
	{
		Name: "Request cut in its key", Rule: "RFC 5044 7.1.1", Side: Dials, raw: true, Want: ignored,
		run: func(p *Peer) { p.write(plain(p)[:7]); p.fin() },
	},
	{
		Name: "Request cut in its header", Rule: "RFC 5044 7.1.1", Side: Dials, raw: true, Want: ignored,
		run: func(p *Peer) { p.write(plain(p)[:19]); p.fin() },
	},
	{
		Name: "Request cut in its control word", Rule: "RFC 6581 5", Side: Dials, raw: true, Want: ignored,
		run: func(p *Peer) { p.write(plain(p)[:22]); p.fin() },
	},
	{
		Name: "Request cut in its private data", Rule: "RFC 5044 7.1.1", Side: Dials, raw: true, Want: ignored,
		run: func(p *Peer) { p.write(p.request(0, 1, control, zeros(100))[:119]); p.reset() },
	},
	{
		Name: "FPDU glued to the Request", Rule: "RFC 5044 7.1.2: wait for the Reply", Side: Dials, raw: true, Want: ignored,
		run: asks(func(p *Peer) []byte { return append(plain(p), p.fpdu(seg(send(1, 0), 'x'))...) }),
	},
	{
		Name: "Request twice", Rule: "RFC 5044 7.1.2: one frame", Side: Dials, raw: true, Want: ignored,
		run: asks(func(p *Peer) []byte { return append(plain(p), plain(p)...) }),
	},
	{
		Name: "Request, then FIN", Rule: "RFC 5044 7.1.2", Side: Dials, raw: true, Want: Want{Told: Anything},
		run: func(p *Peer) { p.write(plain(p)); p.fin() },
	},
	{
		Name: "Request, then reset", Rule: "RFC 5044 7.1.2", Side: Dials, raw: true, Want: Want{Told: Anything},
		run: func(p *Peer) { p.write(plain(p)); p.reset() },
	},
	{
		Name: "Request, then reset after the Reply", Rule: "RFC 5044 7.1.2", Side: Dials, raw: true,
		Want: Want{Told: Failed, Errno: unix.ECONNRESET},
		run:  func(p *Peer) { p.write(plain(p)); p.frame(); p.reset() },
	},
	{ // lawful all the same: siw ignores R, too (iwarp.md section 2)
		Name: "Request that says rejected", Rule: "RFC 5044 7.1.1: R in a Request", Side: Dials, raw: true, Want: Want{Told: Orderly},
		run: func(p *Peer) {
			p.write(p.request(wire.FlagEnhanced|wire.FlagReject, 2, control, nil))
			p.frame()
			p.fin()
		},
	},
	{
		Name: "Request with every reserved bit", Rule: "RFC 5044 7.1.1: reserved bits", Side: Dials, raw: true, Want: Want{Told: Orderly},
		run: func(p *Peer) { p.write(p.request(wire.FlagEnhanced|0x0f, 2, control, nil)); p.frame(); p.fin() },
	},
	{
		Name: "Request of revision 1 with S", Rule: "RFC 6581 5: S is revision 2's", Side: Dials, raw: true, Want: Want{Told: Orderly},
		run: func(p *Peer) { p.write(p.request(wire.FlagEnhanced, 1, control, nil)); p.frame(); p.fin() },
	},
	{
		Name: "Request with 512 bytes, byte by byte", Rule: "RFC 5044 7.1.1: the longest", Side: Dials, raw: true,
		Want: Want{Told: Orderly},
		run:  func(p *Peer) { p.slowly(p.request(0, 1, control, zeros(512))); p.frame(); p.fin() },
	},
	{
		Name: "Request for 16383 Reads", Rule: "RFC 6581 9: IRD and ORD not negotiated", Side: Dials, raw: true, Want: Want{Told: Orderly},
		run: func(p *Peer) {
			p.write(p.request(wire.FlagEnhanced, 2, wire.Control{IRD: wire.NotNegotiated, ORD: wire.NotNegotiated}, nil))
			p.frame()
			p.fin()
		},
	},
	{
		Name: "peer-to-peer, then FIN instead of its FPDU", Rule: "RFC 6581 9.2: RTR", Side: Dials, raw: true, Want: tooEarly,
		run: func(p *Peer) { p.write(p.request(wire.FlagEnhanced, 2, p2p(true, true), nil)); p.frame(); p.fin() },
	},
	{
		Name: "peer-to-peer, then reset instead of its FPDU", Rule: "RFC 6581 9.2: RTR", Side: Dials, raw: true, Want: tooEarly,
		run: func(p *Peer) { p.write(p.request(wire.FlagEnhanced, 2, p2p(false, true), nil)); p.frame(); p.reset() },
	},
	{
		Name: "peer-to-peer without an RTR it can send", Rule: "RFC 6581 9.2: RTR", Side: Dials, raw: true, Want: tooEarly,
		run: func(p *Peer) { p.write(p.request(wire.FlagEnhanced, 2, p2p(false, false), nil)); p.frame(); p.fin() },
	},
	{
		Name: "peer-to-peer, then an FPDU that is wrong", Rule: "RFC 6581 9.2: RTR", Side: Dials, raw: true,
		Want: Want{
			Told: ConnectError, Errno: unix.EPROTO, Term: Term{wire.LayerDDP, wire.DDPUntagged, 3}, Copy: true, Text: "MSN 9",
		},
		run: func(p *Peer) {
			if p.begin(wire.FlagEnhanced, 2, p2p(true, false)) {
				p.bad(seg(send(9, 0)))
			}
		},
	},
	{
		Name: "peer-to-peer with the empty FPDU", Rule: "RFC 6581 9.2: B, which nobody chose", Side: Dials, raw: true,
		Want: Want{Told: ConnectError, Errno: unix.EPROTO, Term: Term{wire.LayerMPA, 0, 3}},
		run: func(p *Peer) {
			if p.begin(wire.FlagEnhanced, 2, wire.Control{PeerToPeer: true, RTREmpty: true, IRD: 1, ORD: 1}) {
				p.bad(nil)
			}
		},
	},
	begins("Read where none was agreed on", wire.Control{}, func(r *Regions) []byte { return from(both, 0, 1)(r) }),
	begins(
		"Read behind an empty one where none was agreed on", wire.Control{},
		func(*Regions) []byte { return readReq(2, wire.ReadRequest{Size: 1}) }, readReq(1, wire.ReadRequest{}),
	),
	begins(
		"Read where only the RTR was agreed on", wire.Control{PeerToPeer: true, RTRRead: true},
		func(*Regions) []byte { return readReq(2, wire.ReadRequest{Size: 1}) }, readReq(1, wire.ReadRequest{SourceSTag: 1}),
	),
}

// begins is an exchange whose Request agrees on no Reads, and which reads all the same.
func begins(name string, c wire.Control, wrong func(*Regions) []byte, right ...[]byte) Exchange {
	return Exchange{
		Name: name, Rule: "RFC 6581 9.1: IRD", Side: Dials, raw: true, Regions: true, Want: refusal(rdmap, operation, 7, "more than 0 Reads"),
		run: func(p *Peer) {
			if p.begin(wire.FlagEnhanced, 2, c) {
				p.good(right...)
				p.bad(wrong(&p.o.Regions))
			}
		},
	}
}
