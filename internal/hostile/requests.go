package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// requests are exchanges with the mistakes of an initiator in set-up.
var requests = []Exchange{
	dials("nothing, then FIN", "RFC 5044 7.1.2", ignored, fin),
	dials("nothing, then reset", "RFC 5044 7.1.2", ignored, reset),
	dials("HTTP", "RFC 5044 7.1.1: key", ignored, writes([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))),
	dials("zeros", "RFC 5044 7.1.1: key", ignored, writes(zeros(4096))),
	dials("key wrong in its last byte", "RFC 5044 7.1.1: key", ignored, says(plain, set(15, 'f'))),
	dials("Reply instead of a Request", "RFC 5044 7.1.1: key", ignored,
		writes(wire.AppendFrame(nil, &wire.Frame{Reply: true, Flags: wire.FlagEnhanced, Revision: 2, Control: control}))),
	dials("Request of revision 3", "RFC 6581 5: revision", ignored, says(request(wire.FlagEnhanced, 3, control, 0))),
	dials("Request of revision 255", "RFC 6581 5: revision", ignored, says(request(0, 255, control, 0))),
	dials("Request that demands markers", "RFC 5044 7.1.1: M", rejected,
		says(request(wire.FlagEnhanced|wire.FlagMarkers, 2, control, 0))),
	dials("Request without room for its control word", "RFC 6581 5: S and PD_Length 0", rejected, says(plain, set(19, 0), cut(20))),
	dials("Request with 3 bytes for its control word", "RFC 6581 5: S and PD_Length 3", rejected, says(plain, set(19, 3), cut(23))),
	dials("Request with 513 bytes of private data", "RFC 5044 7.1.1: PD_Length", ignored, says(request(0, 1, control, 513))),
	dials("Request with 65535 bytes of private data", "RFC 5044 7.1.1: PD_Length", ignored, says(request(0, 1, control, 65535))),
	dials("Request cut in its key", "RFC 5044 7.1.1", ignored, says(plain, cut(7)), fin),
	dials("Request cut in its header", "RFC 5044 7.1.1", ignored, says(plain, cut(19)), fin),
	dials("Request cut in its control word", "RFC 6581 5", ignored, says(plain, cut(22)), fin),
	dials("Request cut in its private data", "RFC 5044 7.1.1", ignored, says(request(0, 1, control, 100), cut(119)), reset),
	dials("FPDU glued to the Request", "RFC 5044 7.1.2: wait for the Reply", ignored,
		func(p *Peer) { p.write(append(plain(p), p.fpdu(seg(send(1, 0), 'x'))...)) }),
	dials("Request twice", "RFC 5044 7.1.2: one frame", ignored, says(plain, twice)),
	dials("Request, then FIN", "RFC 5044 7.1.2", anything, says(plain), fin),
	dials("Request, then reset", "RFC 5044 7.1.2", anything, says(plain), reset),
	dials("Request, then reset after the Reply", "RFC 5044 7.1.2", cutOff, says(plain), readFrame, reset),
	// It must be accepted nevertheless: siw ignores R too.
	dials("Request that says rejected", "RFC 5044 7.1.1: R in a Request", orderly,
		says(request(wire.FlagEnhanced|wire.FlagReject, 2, control, 0)), readFrame, fin),
	dials("Request with every reserved bit", "RFC 5044 7.1.1: reserved bits", orderly,
		says(request(wire.FlagEnhanced|0x0f, 2, control, 0)), readFrame, fin),
	dials("Request of revision 1 with S", "RFC 6581 5: S is revision 2's", orderly,
		says(request(wire.FlagEnhanced, 1, control, 0)), readFrame, fin),
	dials("Request with 512 bytes, byte by byte", "RFC 5044 7.1.1: the longest", orderly,
		func(p *Peer) { p.slowly(p.request(0, 1, control, zeros(512))) }, readFrame, fin),
	dials("Request for 16383 Reads", "RFC 6581 9: IRD and ORD not negotiated", orderly,
		says(request(wire.FlagEnhanced, 2, wire.Control{IRD: wire.NotNegotiated, ORD: wire.NotNegotiated}, 0)), readFrame, fin),
	dials("peer-to-peer, then FIN instead of its FPDU", "RFC 6581 9.2: RTR", tooEarly,
		says(request(wire.FlagEnhanced, 2, p2p(true, true), 0)), readFrame, fin),
	dials("peer-to-peer, then reset instead of its FPDU", "RFC 6581 9.2: RTR", tooEarly,
		says(request(wire.FlagEnhanced, 2, p2p(false, true), 0)), readFrame, reset),
	dials("peer-to-peer without an RTR it can send", "RFC 6581 9.2: RTR", tooEarly,
		says(request(wire.FlagEnhanced, 2, p2p(false, false), 0)), readFrame, fin),
	dials("peer-to-peer, then an FPDU that is wrong", "RFC 6581 9.2: RTR",
		Want{Outcome: ConnectError, Errno: unix.EPROTO, Term: Term{ddp, untagged, 3}, Copy: true, Text: "MSN 9"},
		begins(p2p(true, false), bad(seg(send(9, 0))))),
	dials("peer-to-peer with the empty FPDU", "RFC 6581 9.2: B, which nobody chose",
		Want{Outcome: ConnectError, Errno: unix.EPROTO, Term: Term{mpa, 0, 3}},
		begins(wire.Control{PeerToPeer: true, RTREmpty: true, IRD: 1, ORD: 1}, bad(nil))),
	unagreed("Read where none was agreed on", wire.Control{}, from(both, 0, 1)),
	unagreed("Read behind an empty one where none was agreed on", wire.Control{}, of(readReq(2, wire.ReadRequest{Size: 1})),
		readReq(1, wire.ReadRequest{})),
	unagreed("Read where only the RTR was agreed on", wire.Control{PeerToPeer: true, RTRRead: true},
		of(readReq(2, wire.ReadRequest{Size: 1})), readReq(1, wire.ReadRequest{SourceSTag: 1})),
}

// unagreed makes an exchange whose Request agrees on no Reads, and which Reads nevertheless.
func unagreed(name string, c wire.Control, wrong func(*Regions) []byte, right ...[]byte) Exchange {
	x := dials(name, "RFC 6581 9.1: IRD", refusal(rdmap, operation, 7, "more than 0 Reads"),
		begins(c, good(right...), func(p *Peer) { p.bad(wrong(&p.o.Regions)) }))
	x.Regions = true
	return x
}
