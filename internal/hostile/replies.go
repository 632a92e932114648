package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// responders are exchanges with the mistakes of a responder in set-up.
var responders = []Exchange{
	answerExchange("FIN instead of a Reply", "RFC 5044 7.1.2", hungUp, readFrame, fin),
	answerExchange("reset instead of a Reply", "RFC 5044 7.1.2", hungUp, readFrame, reset),
	answerExchange("reset instead of reading", "RFC 5044 7.1.2", hungUp, reset),
	answerExchange("Reply cut in its key", "RFC 5044 7.1.1", hungUp, replyStep(cutTo(9)), fin),
	answerExchange("Reply cut in its control word", "RFC 6581 5", hungUp, replyStep(cutTo(23)), fin),
	answerExchange("HTTP answer", "RFC 5044 7.1.1: key", notAReply,
		answersWith(func(*Peer, *wire.Frame) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") })),
	answerExchange("Request instead of a Reply", "RFC 5044 7.1.1: key", notAReply, repliesFrame(func(r *wire.Frame) { r.Reply = false })),
	answerExchange("Reply of revision 3", "RFC 6581 5: revision", notAReply, repliesFrame(func(r *wire.Frame) { r.Revision = 3 })),
	answerExchange("Reply of revision 1", "RFC 6581 5: revision", hungUp, repliesFrame(func(r *wire.Frame) { r.Revision, r.Flags = 1, 0 })),
	answerExchange("Reply of revision 2 without S", "RFC 6581 5: S", hungUp,
		repliesFrame(func(r *wire.Frame) { r.Flags &^= wire.FlagEnhanced })),
	answerExchange("Reply that demands markers", "RFC 5044 7.1.1: M", Want{Outcome: Refused, Errno: unix.ECONNREFUSED, Text: "markers"},
		repliesFrame(func(r *wire.Frame) { r.Flags |= wire.FlagMarkers })),
	answerExchange("Reply that rejects, with bytes behind it", "RFC 5044 7.1.1: R",
		Want{Outcome: Refused, Errno: unix.ECONNRESET, Text: "rejected by the peer"},
		replyStep(setByte(16, byte(wire.FlagEnhanced|wire.FlagReject)), followedBy(zeros(10000)))),
	answerExchange("Reply without room for its control word", "RFC 6581 5: S and PD_Length 0", notAReply, replyStep(setByte(19, 0), cutTo(20))),
	answerExchange("Reply with 3 bytes for its control word", "RFC 6581 5: S and PD_Length 3", notAReply, replyStep(setByte(19, 3), cutTo(23))),
	answerExchange("Reply with 509 bytes of private data", "RFC 5044 7.1.1: PD_Length", notAReply,
		repliesFrame(func(r *wire.Frame) { r.Private = zeros(509) })),
	answerExchange("Reply with 65531 bytes of private data", "RFC 5044 7.1.1: PD_Length", notAReply,
		repliesFrame(func(r *wire.Frame) { r.Private = zeros(65531) })),
	answerExchange("Reply that wants more Reads than we serve", "RFC 6581 9.1: ORD",
		Want{Outcome: ConnectError, Errno: unix.EINVAL, Term: Term{mpa, 0, 6}, Text: "129 Reads"},
		repliesFrame(func(r *wire.Frame) { r.Control.ORD = mostDepth + 1 })),
	answerExchange("Reply that chooses no RTR", "RFC 6581 9.2: RTR", noRTR, choosesRTR(false, false, false)),
	answerExchange("Reply that chooses the empty FPDU", "RFC 6581 9.2: RTR that was not offered", noRTR, choosesRTR(false, false, true)),
	answerExchange("Reply, then FIN", "RFC 5044 7.1.2", orderly, replyStep(), fin),
	// the initiator may find the reset while it reads the Reply, or while it sends its RTR
	answerExchange("Reply, then reset", "RFC 5044 7.1.2", anything, replyStep(), reset),
	answerExchange("Reply with 248 bytes, byte by byte", "RFC 5044 7.1.1", orderly, repliesPrivately(248, (*Peer).writeSlowly), fin),
	// "MPA ID" is the start of an FPDU, which would have to be 19792 bytes long before its CRC were
	// looked at
	answerExchange("Reply twice", "RFC 5044 7.1.2: one frame", wantBareTerminate(rdmap, operation, 5, "RDMAP version"),
		answersWith(func(p *Peer, f *wire.Frame) []byte {
			p.crc = false
			return repeatFrame(setByte(16, byte(wire.FlagEnhanced))(p.newReply(f)))
		}), fin),
	answerExchange("wrong FPDU glued to the Reply", "RFC 5041 8.2: MSN", wantTerminate(ddp, untagged, 3, "MSN 7"),
		answersWith(func(p *Peer, f *wire.Frame) []byte {
			p.seen.Offending = newULPDU(sendHeader(7, 0), 'x')
			return append(p.newReply(f), p.frameULPDU(p.seen.Offending)...)
		})),
	answerExchange("Reply before the Request is read", "RFC 5044 7.1.2", orderly,
		func(p *Peer) {
			p.write(p.newReply(&wire.Frame{Flags: wire.FlagEnhanced, Revision: 2, Control: p2pControl(true, true)}))
		}, readFrame, fin),
	answersRead("Read RTR, answered as it should be", orderly, newResponse(0, 0, 0, true)),
	answersRead("Read RTR, answered with a byte", noBounds, newResponse(0, 0, 1, true)),
	answersRead("Read RTR, answered to another STag", noSTag, newResponse(1, 0, 0, true)),
	answersRead("Read RTR, answered at another address", noBounds, newResponse(0, 1, 0, true)),
	answersRead("Read RTR, answered in part", noBounds, newResponse(0, 0, 0, false)),
	answersRead("Read RTR, answered twice", unasked, newResponse(0, 0, 0, true), newResponse(0, 0, 0, true)),
}

// choosesRTR makes a step that sends a Reply that chooses these RTRs.
func choosesRTR(write, read, empty bool) step {
	return repliesFrame(func(r *wire.Frame) { r.Control.RTRWrite, r.Control.RTRRead, r.Control.RTREmpty = write, read, empty })
}

// repliesPrivately makes a step that reads the Request, and sends a Reply with n bytes of private
// data.
func repliesPrivately(n int, send func(*Peer, []byte)) step {
	return func(p *Peer) {
		if f := p.readMPAFrame(); f != nil {
			r, _, _ := wire.ConsumeFrame(p.newReply(f))
			r.Private = zeros(n)
			send(p, wire.AppendFrame(nil, &r))
		}
	}
}

// answersRead makes an exchange whose Reply asks for the empty Read as RTR, and which answers that
// Read.
func answersRead(name string, w Want, last func(wire.ReadRequest) []byte, before ...func(wire.ReadRequest) []byte) Exchange {
	return answerExchange(name, "RFC 6581 9.2: RTR", w, choosesRTR(false, true, false), answersAsked("RTR", w, last, before))
}
