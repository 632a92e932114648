package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// requests are exchanges with the mistakes of an initiator in set-up.
var requests = []Exchange{
	dialExchange("nothing, then FIN", "RFC 5044 7.1.2", ignored, fin),
	dialExchange("nothing, then reset", "RFC 5044 7.1.2", ignored, reset),
	dialExchange("HTTP", "RFC 5044 7.1.1: key", ignored, writeStep([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))),
	dialExchange("zeros", "RFC 5044 7.1.1: key", ignored, writeStep(zeros(4096))),
	dialExchange("key wrong in its last byte", "RFC 5044 7.1.1: key", ignored, frameStep(plainRequest, setByte(15, 'f'))),
	dialExchange("Reply instead of a Request", "RFC 5044 7.1.1: key", ignored,
		writeStep(wire.AppendFrame(nil, &wire.Frame{Reply: true, Flags: wire.FlagEnhanced, Revision: 2, Control: control}))),
	dialExchange("Request of revision 3", "RFC 6581 5: revision", ignored, frameStep(requestMessage(wire.FlagEnhanced, 3, control, 0))),
	dialExchange("Request of revision 255", "RFC 6581 5: revision", ignored, frameStep(requestMessage(0, 255, control, 0))),
	dialExchange("Request that demands markers", "RFC 5044 7.1.1: M", rejected,
		frameStep(requestMessage(wire.FlagEnhanced|wire.FlagMarkers, 2, control, 0))),
	dialExchange("Request without room for its control word", "RFC 6581 5: S and PD_Length 0", rejected, frameStep(plainRequest, setByte(19, 0), cutTo(20))),
	dialExchange("Request with 3 bytes for its control word", "RFC 6581 5: S and PD_Length 3", rejected, frameStep(plainRequest, setByte(19, 3), cutTo(23))),
	dialExchange("Request with 513 bytes of private data", "RFC 5044 7.1.1: PD_Length", ignored, frameStep(requestMessage(0, 1, control, 513))),
	dialExchange("Request with 65535 bytes of private data", "RFC 5044 7.1.1: PD_Length", ignored, frameStep(requestMessage(0, 1, control, 65535))),
	dialExchange("Request cut in its key", "RFC 5044 7.1.1", ignored, frameStep(plainRequest, cutTo(7)), fin),
	dialExchange("Request cut in its header", "RFC 5044 7.1.1", ignored, frameStep(plainRequest, cutTo(19)), fin),
	dialExchange("Request cut in its control word", "RFC 6581 5", ignored, frameStep(plainRequest, cutTo(22)), fin),
	dialExchange("Request cut in its private data", "RFC 5044 7.1.1", ignored, frameStep(requestMessage(0, 1, control, 100), cutTo(119)), reset),
	dialExchange("FPDU glued to the Request", "RFC 5044 7.1.2: wait for the Reply", ignored,
		func(p *Peer) { p.write(append(plainRequest(p), p.frameULPDU(newULPDU(sendHeader(1, 0), 'x'))...)) }),
	dialExchange("Request twice", "RFC 5044 7.1.2: one frame", ignored, frameStep(plainRequest, repeatFrame)),
	dialExchange("Request, then FIN", "RFC 5044 7.1.2", anything, frameStep(plainRequest), fin),
	dialExchange("Request, then reset", "RFC 5044 7.1.2", anything, frameStep(plainRequest), reset),
	dialExchange("Request, then reset after the Reply", "RFC 5044 7.1.2", cutOff, frameStep(plainRequest), readFrame, reset),
	// It must be accepted nevertheless: siw ignores R too.
	dialExchange("Request that says rejected", "RFC 5044 7.1.1: R in a Request", orderly,
		frameStep(requestMessage(wire.FlagEnhanced|wire.FlagReject, 2, control, 0)), readFrame, fin),
	dialExchange("Request with every reserved bit", "RFC 5044 7.1.1: reserved bits", orderly,
		frameStep(requestMessage(wire.FlagEnhanced|0x0f, 2, control, 0)), readFrame, fin),
	dialExchange("Request of revision 1 with S", "RFC 6581 5: S is revision 2's", orderly,
		frameStep(requestMessage(wire.FlagEnhanced, 1, control, 0)), readFrame, fin),
	dialExchange("Request with 512 bytes, byte by byte", "RFC 5044 7.1.1: the longest", orderly,
		func(p *Peer) { p.writeSlowly(p.newRequest(0, 1, control, zeros(512))) }, readFrame, fin),
	dialExchange("Request for 16383 Reads", "RFC 6581 9: IRD and ORD not negotiated", orderly,
		frameStep(requestMessage(wire.FlagEnhanced, 2, wire.Control{IRD: wire.NotNegotiated, ORD: wire.NotNegotiated}, 0)), readFrame, fin),
	dialExchange("peer-to-peer, then FIN instead of its FPDU", "RFC 6581 9.2: RTR", tooEarly,
		frameStep(requestMessage(wire.FlagEnhanced, 2, p2pControl(true, true), 0)), readFrame, fin),
	dialExchange("peer-to-peer, then reset instead of its FPDU", "RFC 6581 9.2: RTR", tooEarly,
		frameStep(requestMessage(wire.FlagEnhanced, 2, p2pControl(false, true), 0)), readFrame, reset),
	dialExchange("peer-to-peer without an RTR it can send", "RFC 6581 9.2: RTR", tooEarly,
		frameStep(requestMessage(wire.FlagEnhanced, 2, p2pControl(false, false), 0)), readFrame, fin),
	dialExchange("peer-to-peer, then an FPDU that is wrong", "RFC 6581 9.2: RTR",
		Want{Outcome: ConnectError, Errno: unix.EPROTO, Term: Term{ddp, untagged, 3}, Copy: true, Text: "MSN 9"},
		beginStep(p2pControl(true, false), badStep(newULPDU(sendHeader(9, 0))))),
	dialExchange("peer-to-peer with the empty FPDU", "RFC 6581 9.2: B, which nobody chose",
		Want{Outcome: ConnectError, Errno: unix.EPROTO, Term: Term{mpa, 0, 3}},
		beginStep(wire.Control{PeerToPeer: true, RTREmpty: true, IRD: 1, ORD: 1}, badStep(nil))),
	unagreedExchange("Read where none was agreed on", wire.Control{}, readFromRegion(bothRegion, 0, 1)),
	unagreedExchange("Read behind an empty one where none was agreed on", wire.Control{}, fixedULPDU(readReq(2, wire.ReadRequest{Size: 1})),
		readReq(1, wire.ReadRequest{})),
	unagreedExchange("Read where only the RTR was agreed on", wire.Control{PeerToPeer: true, RTRRead: true},
		fixedULPDU(readReq(2, wire.ReadRequest{Size: 1})), readReq(1, wire.ReadRequest{SourceSTag: 1})),
}

// unagreedExchange makes an exchange whose Request agrees on no Reads, and which Reads
// nevertheless.
func unagreedExchange(name string, c wire.Control, wrong func(*Regions) []byte, right ...[]byte) Exchange {
	x := dialExchange(name, "RFC 6581 9.1: IRD", wantTerminate(rdmap, operation, 7, "more than 0 Reads"),
		beginStep(c, goodStep(right...), func(p *Peer) { p.sendBad(wrong(&p.o.Regions)) }))
	x.Regions = true
	return x
}
