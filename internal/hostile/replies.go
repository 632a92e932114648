package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// responders are exchanges with the mistakes of a responder in set-up.
var responders = []Exchange{
	answers("FIN instead of a Reply", "RFC 5044 7.1.2", hungUp, readFrame, fin),
	answers("reset instead of a Reply", "RFC 5044 7.1.2", hungUp, readFrame, reset),
	answers("reset instead of reading", "RFC 5044 7.1.2", hungUp, reset),
	answers("Reply cut in its key", "RFC 5044 7.1.1", hungUp, replies(cut(9)), fin),
	answers("Reply cut in its control word", "RFC 6581 5", hungUp, replies(cut(23)), fin),
	answers("HTTP answer", "RFC 5044 7.1.1: key", notAReply,
		answersWith(func(*Peer, *wire.Frame) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") })),
	answers("Request instead of a Reply", "RFC 5044 7.1.1: key", notAReply, repliesFrame(func(r *wire.Frame) { r.Reply = false })),
	answers("Reply of revision 3", "RFC 6581 5: revision", notAReply, repliesFrame(func(r *wire.Frame) { r.Revision = 3 })),
	answers("Reply of revision 1", "RFC 6581 5: revision", hungUp, repliesFrame(func(r *wire.Frame) { r.Revision, r.Flags = 1, 0 })),
	answers("Reply of revision 2 without S", "RFC 6581 5: S", hungUp,
		repliesFrame(func(r *wire.Frame) { r.Flags &^= wire.FlagEnhanced })),
	answers("Reply that demands markers", "RFC 5044 7.1.1: M", Want{Outcome: Refused, Errno: unix.ECONNREFUSED, Text: "markers"},
		repliesFrame(func(r *wire.Frame) { r.Flags |= wire.FlagMarkers })),
	answers("Reply that rejects, with bytes behind it", "RFC 5044 7.1.1: R",
		Want{Outcome: Refused, Errno: unix.ECONNRESET, Text: "rejected by the peer"},
		replies(set(16, byte(wire.FlagEnhanced|wire.FlagReject)), followedBy(zeros(10000)))),
	answers("Reply without room for its control word", "RFC 6581 5: S and PD_Length 0", notAReply, replies(set(19, 0), cut(20))),
	answers("Reply with 3 bytes for its control word", "RFC 6581 5: S and PD_Length 3", notAReply, replies(set(19, 3), cut(23))),
	answers("Reply with 509 bytes of private data", "RFC 5044 7.1.1: PD_Length", notAReply,
		repliesFrame(func(r *wire.Frame) { r.Private = zeros(509) })),
	answers("Reply with 65531 bytes of private data", "RFC 5044 7.1.1: PD_Length", notAReply,
		repliesFrame(func(r *wire.Frame) { r.Private = zeros(65531) })),
	answers("Reply that wants more Reads than we serve", "RFC 6581 9.1: ORD",
		Want{Outcome: ConnectError, Errno: unix.EINVAL, Term: Term{mpa, 0, 6}, Text: "129 Reads"},
		repliesFrame(func(r *wire.Frame) { r.Control.ORD = mostDepth + 1 })),
	answers("Reply that chooses no RTR", "RFC 6581 9.2: RTR", noRTR, choosesRTR(false, false, false)),
	answers("Reply that chooses the empty FPDU", "RFC 6581 9.2: RTR that was not offered", noRTR, choosesRTR(false, false, true)),
	answers("Reply, then FIN", "RFC 5044 7.1.2", orderly, replies(), fin),
	// the initiator may find the reset while it reads the Reply, or while it sends its RTR
	answers("Reply, then reset", "RFC 5044 7.1.2", anything, replies(), reset),
	answers("Reply with 248 bytes, byte by byte", "RFC 5044 7.1.1", orderly, repliesPrivately(248, (*Peer).slowly), fin),
	// "MPA ID" is the start of an FPDU, which would have to be 19792 bytes long before its CRC were
	// looked at
	answers("Reply twice", "RFC 5044 7.1.2: one frame", bare(rdmap, operation, 5, "RDMAP version"),
		answersWith(func(p *Peer, f *wire.Frame) []byte {
			p.crc = false
			return twice(set(16, byte(wire.FlagEnhanced))(p.reply(f)))
		}), fin),
	answers("wrong FPDU glued to the Reply", "RFC 5041 8.2: MSN", refusal(ddp, untagged, 3, "MSN 7"),
		answersWith(func(p *Peer, f *wire.Frame) []byte {
			p.seen.Offending = seg(send(7, 0), 'x')
			return append(p.reply(f), p.fpdu(p.seen.Offending)...)
		})),
	answers("Reply before the Request is read", "RFC 5044 7.1.2", orderly,
		func(p *Peer) {
			p.write(p.reply(&wire.Frame{Flags: wire.FlagEnhanced, Revision: 2, Control: p2p(true, true)}))
		}, readFrame, fin),
	answersRead("Read RTR, answered as it should be", orderly, respond(0, 0, 0, true)),
	answersRead("Read RTR, answered with a byte", noBounds, respond(0, 0, 1, true)),
	answersRead("Read RTR, answered to another STag", noSTag, respond(1, 0, 0, true)),
	answersRead("Read RTR, answered at another address", noBounds, respond(0, 1, 0, true)),
	answersRead("Read RTR, answered in part", noBounds, respond(0, 0, 0, false)),
	answersRead("Read RTR, answered twice", unasked, respond(0, 0, 0, true), respond(0, 0, 0, true)),
}

// choosesRTR makes a step that sends a Reply that chooses these RTRs.
func choosesRTR(write, read, empty bool) step {
	return repliesFrame(func(r *wire.Frame) { r.Control.RTRWrite, r.Control.RTRRead, r.Control.RTREmpty = write, read, empty })
}

// repliesPrivately makes a step that reads the Request, and sends a Reply with n bytes of private
// data.
func repliesPrivately(n int, send func(*Peer, []byte)) step {
	return func(p *Peer) {
		if f := p.frame(); f != nil {
			r, _, _ := wire.ConsumeFrame(p.reply(f))
			r.Private = zeros(n)
			send(p, wire.AppendFrame(nil, &r))
		}
	}
}

// answersRead makes an exchange whose Reply asks for the empty Read as RTR, and which answers that
// Read.
func answersRead(name string, w Want, last func(wire.ReadRequest) []byte, before ...func(wire.ReadRequest) []byte) Exchange {
	return answers(name, "RFC 6581 9.2: RTR", w, choosesRTR(false, true, false), answersAsked("RTR", w, last, before))
}
