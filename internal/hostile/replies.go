package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
)

// answersWith is an exchange that reads the Request and sends what make has for it.
func answersWith(make func(p *Peer, f *wire.Frame) []byte) func(*Peer) {
	return func(p *Peer) {
		if f := p.frame(); f != nil {
			p.crc = p.o.CRC || f.Flags&wire.FlagCRC != 0
			p.write(make(p, f))
		}
	}
}

// answersFrame is answersWith for a frame that says something else than the right one.
func answersFrame(change func(r *wire.Frame)) func(*Peer) {
	return answersWith(func(p *Peer, f *wire.Frame) []byte {
		r, _, _ := wire.ConsumeFrame(p.reply(f))
		change(&r)
		return wire.AppendFrame(nil, &r)
	})
}

// notAReply is how an initiator ends set-up over a frame that is malformed.
var notAReply = Want{Told: ConnectError, Errno: unix.EINVAL, Term: Term{wire.LayerMPA, 0, 4}}

// hungUp is how it takes no answer.
var hungUp = Want{Told: Refused, Errno: unix.ECONNRESET}

// replies is what a responder may do wrong in set-up (iwarp.md sections 2 and 11).
var replies = []Exchange{
	{
		Name: "FIN instead of a Reply", Rule: "RFC 5044 7.1.2", Side: Answers, raw: true, Want: hungUp,
		run: func(p *Peer) { p.frame(); p.fin() },
	},
	{
		Name: "reset instead of a Reply", Rule: "RFC 5044 7.1.2", Side: Answers, raw: true, Want: hungUp,
		run: func(p *Peer) { p.frame(); p.reset() },
	},
	{Name: "reset instead of reading", Rule: "RFC 5044 7.1.2", Side: Answers, raw: true, Want: hungUp, run: (*Peer).reset},
	{
		Name: "Reply cut in its key", Rule: "RFC 5044 7.1.1", Side: Answers, raw: true, Want: hungUp,
		run: func(p *Peer) { answersWith(func(p *Peer, f *wire.Frame) []byte { return p.reply(f)[:9] })(p); p.fin() },
	},
	{
		Name: "Reply cut in its control word", Rule: "RFC 6581 5", Side: Answers, raw: true, Want: hungUp,
		run: func(p *Peer) { answersWith(func(p *Peer, f *wire.Frame) []byte { return p.reply(f)[:23] })(p); p.fin() },
	},
	{
		Name: "HTTP answer", Rule: "RFC 5044 7.1.1: key", Side: Answers, raw: true, Want: notAReply,
		run: answersWith(func(*Peer, *wire.Frame) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }),
	},
	{
		Name: "Request instead of a Reply", Rule: "RFC 5044 7.1.1: key", Side: Answers, raw: true, Want: notAReply,
		run: answersFrame(func(r *wire.Frame) { r.Reply = false }),
	},
	{
		Name: "Reply of revision 3", Rule: "RFC 6581 5: revision", Side: Answers, raw: true, Want: notAReply,
		run: answersFrame(func(r *wire.Frame) { r.Revision = 3 }),
	},
	{
		Name: "Reply of revision 1", Rule: "RFC 6581 5: revision", Side: Answers, raw: true, Want: hungUp,
		run: answersFrame(func(r *wire.Frame) { r.Revision, r.Flags = 1, 0 }),
	},
	{
		Name: "Reply of revision 2 without S", Rule: "RFC 6581 5: S", Side: Answers, raw: true, Want: hungUp,
		run: answersFrame(func(r *wire.Frame) { r.Flags &^= wire.FlagEnhanced }),
	},
	{
		Name: "Reply that demands markers", Rule: "RFC 5044 7.1.1: M", Side: Answers, raw: true,
		Want: Want{Told: Refused, Errno: unix.ECONNREFUSED, Text: "markers"},
		run:  answersFrame(func(r *wire.Frame) { r.Flags |= wire.FlagMarkers }),
	},
	{
		Name: "Reply that rejects, with bytes behind it", Rule: "RFC 5044 7.1.1: R", Side: Answers, raw: true,
		Want: Want{Told: Refused, Errno: unix.ECONNRESET, Text: "rejected by the peer"},
		run: answersWith(func(p *Peer, f *wire.Frame) []byte {
			return append(spoil(p.reply(f), 16, byte(wire.FlagEnhanced|wire.FlagReject)), zeros(10000)...)
		}),
	},
	{
		Name: "Reply without room for its control word", Rule: "RFC 6581 5: S and PD_Length 0", Side: Answers, raw: true, Want: notAReply,
		run: answersWith(func(p *Peer, f *wire.Frame) []byte { return spoil(p.reply(f), 19, 0)[:20] }),
	},
	{
		Name: "Reply with 3 bytes for its control word", Rule: "RFC 6581 5: S and PD_Length 3", Side: Answers, raw: true, Want: notAReply,
		run: answersWith(func(p *Peer, f *wire.Frame) []byte { return spoil(p.reply(f), 19, 3)[:23] }),
	},
	{
		Name: "Reply with 509 bytes of private data", Rule: "RFC 5044 7.1.1: PD_Length", Side: Answers, raw: true, Want: notAReply,
		run: answersFrame(func(r *wire.Frame) { r.Private = zeros(509) }),
	},
	{
		Name: "Reply with 65531 bytes of private data", Rule: "RFC 5044 7.1.1: PD_Length", Side: Answers, raw: true, Want: notAReply,
		run: answersFrame(func(r *wire.Frame) { r.Private = zeros(65531) }),
	},
	{
		Name: "Reply that wants more Reads than we serve", Rule: "RFC 6581 9.1: ORD", Side: Answers, raw: true,
		Want: Want{Told: ConnectError, Errno: unix.EINVAL, Term: Term{wire.LayerMPA, 0, 6}, Text: "5 Reads"},
		run:  answersFrame(func(r *wire.Frame) { r.Control.ORD = Depth + 1 }),
	},
	{
		Name: "Reply that chooses no RTR", Rule: "RFC 6581 9.2: RTR", Side: Answers, raw: true,
		Want: Want{Told: ConnectError, Errno: unix.EINVAL, Term: Term{wire.LayerMPA, 0, 7}},
		run:  answersFrame(func(r *wire.Frame) { r.Control.RTRWrite, r.Control.RTRRead = false, false }),
	},
	{
		Name: "Reply that chooses the empty FPDU", Rule: "RFC 6581 9.2: RTR that was not offered", Side: Answers, raw: true,
		Want: Want{Told: ConnectError, Errno: unix.EINVAL, Term: Term{wire.LayerMPA, 0, 7}},
		run:  answersFrame(func(r *wire.Frame) { r.Control.RTRWrite, r.Control.RTRRead, r.Control.RTREmpty = false, false, true }),
	},
	{
		Name: "Reply, then FIN", Rule: "RFC 5044 7.1.2", Side: Answers, raw: true, Want: Want{Told: Orderly},
		run: func(p *Peer) { answersFrame(func(*wire.Frame) {})(p); p.fin() },
	},
	{ // the initiator may find the reset while it reads the Reply, or while it sends its RTR
		Name: "Reply, then reset", Rule: "RFC 5044 7.1.2", Side: Answers, raw: true, Want: Want{Told: Anything},
		run: func(p *Peer) { answersFrame(func(*wire.Frame) {})(p); p.reset() },
	},
	{
		Name: "Reply with 248 bytes, byte by byte", Rule: "RFC 5044 7.1.1", Side: Answers, raw: true, Want: Want{Told: Orderly},
		run: func(p *Peer) {
			if f := p.frame(); f != nil {
				r, _, _ := wire.ConsumeFrame(p.reply(f))
				r.Private = zeros(248)
				p.slowly(wire.AppendFrame(nil, &r))
				p.fin()
			}
		},
	},
	{
		Name: "Reply twice", Rule: "RFC 5044 7.1.2: one frame", Side: Answers, raw: true,
		// "MPA ID" is the start of an FPDU
		Want: bare(wire.LayerRDMAP, wire.RDMAPOperation, 5, "RDMAP version"),
		run: func(p *Peer) {
			answersWith(func(p *Peer, f *wire.Frame) []byte {
				// the second one would have to be 19792 bytes long before its CRC were looked at
				p.crc = false
				r := spoil(p.reply(f), 16, byte(wire.FlagEnhanced))
				return append(r, r...)
			})(p)
			p.fin()
		},
	},
	{
		Name: "wrong FPDU glued to the Reply", Rule: "RFC 5041 8.2: MSN", Side: Answers, raw: true,
		Want: refusal(wire.LayerDDP, wire.DDPUntagged, 3, "MSN 7"),
		run: answersWith(func(p *Peer, f *wire.Frame) []byte {
			p.seen.Offending = seg(send(7, 0), 'x')
			return append(p.reply(f), p.fpdu(p.seen.Offending)...)
		}),
	},
	{
		Name: "Reply before the Request is read", Rule: "RFC 5044 7.1.2", Side: Answers, raw: true, Want: Want{Told: Orderly},
		run: func(p *Peer) {
			p.write(p.reply(&wire.Frame{Flags: wire.FlagEnhanced, Revision: 2, Control: p2p(true, true)}))
			p.frame()
			p.fin()
		},
	},
	choosesRead("Read RTR, answered as it should be", orderly, respond(0, 0, 0, true)),
	choosesRead("Read RTR, answered with a byte", noBounds, respond(0, 0, 1, true)),
	choosesRead("Read RTR, answered to another STag", noSTag, respond(1, 0, 0, true)),
	choosesRead("Read RTR, answered at another address", noBounds, respond(0, 1, 0, true)),
	choosesRead("Read RTR, answered in part", noBounds, respond(0, 0, 0, false)),
	choosesRead("Read RTR, answered twice", refusal(ddp, 0, 0, "Read Response"), respond(0, 0, 0, true), respond(0, 0, 0, true)),
}

// choosesRead is an exchange whose Reply wants the empty Read as RTR, and which answers that.
func choosesRead(name string, w Want, last func(wire.ReadRequest) []byte, before ...func(wire.ReadRequest) []byte) Exchange {
	return Exchange{
		Name: name, Rule: "RFC 6581 9.2: RTR", Side: Answers, raw: true, Want: w,
		run: func(p *Peer) {
			answersFrame(func(r *wire.Frame) { r.Control.RTRWrite, r.Control.RTRRead = false, true })(p)
			r, ok := p.asked()
			if !ok {
				p.wrong("no RTR came")
				return
			}
			for _, make := range before {
				p.good(make(r))
			}
			if w.Told == Orderly {
				p.good(last(r))
				p.fin()
			} else {
				p.bad(last(r))
			}
		},
	}
}
