package hostile

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
)

// wait is a Run that says nothing.
func wait(*Peer) {}

// loris sends b so slowly that no deadline for the whole is met, and none between two bytes missed.
func (p *Peer) loris(b []byte) {
	for i := range b {
		if _, err := p.conn.Write(b[i : i+1]); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stalls is an exchange that stops in the middle of a message.
func stalls(name string, say func(p *Peer)) Exchange {
	return Exchange{
		Name: name, Rule: "iwarp's Config.MessageTimeout: a message holds its receive", Slow: true,
		Want: Want{Told: Failed, Errno: unix.ETIMEDOUT, Text: "in the middle of a message"}, run: say,
	}
}

var outOfPatience = Want{Told: Unreachable, Errno: unix.ETIMEDOUT}

// silences is who stops talking, and when.
var silences = []Exchange{
	{
		Name: "silent from the start", Rule: "iwarp.md 2.1: 5 s for a Request", Side: Dials, raw: true, Slow: true, Want: ignored,
		run: wait,
	},
	{
		Name: "silent in its Request's key", Rule: "iwarp.md 2.1: 5 s for a Request", Side: Dials, raw: true, Slow: true, Want: ignored,
		run: asks(func(p *Peer) []byte { return plain(p)[:5] }),
	},
	{
		Name: "silent in its Request's private data", Rule: "iwarp.md 2.1: 5 s for a Request", Side: Dials, raw: true, Slow: true,
		Want: ignored,
		run:  asks(func(p *Peer) []byte { return p.request(0, 1, control, zeros(100))[:100] }),
	},
	{
		Name: "Request too slow", Rule: "iwarp.md 2.1: 5 s for a Request, not for a byte of it", Side: Dials, raw: true, Slow: true,
		Want: ignored,
		run:  func(p *Peer) { p.loris(p.request(0, 1, control, zeros(500))) },
	},
	{
		Name: "silent after a Reply to peer-to-peer", Rule: "RFC 6581 9.2: RTR", Side: Dials, raw: true, Slow: true, Want: outOfPatience,
		run: func(p *Peer) { p.write(p.request(wire.FlagEnhanced, 2, p2p(true, true), nil)); p.frame() },
	},
	{
		Name: "silent in its first FPDU", Rule: "RFC 6581 9.2: RTR", Side: Dials, raw: true, Slow: true, Want: outOfPatience,
		run: func(p *Peer) {
			if p.begin(wire.FlagEnhanced, 2, p2p(true, true)) {
				p.write(p.fpdu(write(1, 0, 0))[:17])
			}
		},
	},
	{
		Name: "no Reply", Rule: "iwarp.md 2.1: 10 s for a Reply", Side: Answers, raw: true, Slow: true, Want: outOfPatience,
		run: func(p *Peer) { p.frame() },
	},
	{
		Name: "Request not even read", Rule: "iwarp.md 2.1: 10 s for a Reply", Side: Answers, raw: true, Slow: true, Want: outOfPatience,
		run: wait,
	},
	{
		Name: "half a Reply", Rule: "iwarp.md 2.1: 10 s for a Reply", Side: Answers, raw: true, Slow: true, Want: outOfPatience,
		run: answersWith(func(p *Peer, f *wire.Frame) []byte { return p.reply(f)[:22] }),
	},
	{
		Name: "Reply too slow", Rule: "iwarp.md 2.1: 10 s for a Reply", Side: Answers, raw: true, Slow: true, Want: outOfPatience,
		run: func(p *Peer) {
			if f := p.frame(); f != nil {
				r, _, _ := wire.ConsumeFrame(p.reply(f))
				r.Private = zeros(200)
				p.loris(wire.AppendFrame(nil, &r))
			}
		},
	},
	{
		Name: "stays after our Terminate", Rule: "iwarp.md 8: short wait, close", Slow: true, Want: refusal(ddp, untagged, 3, "MSN 5"),
		run: func(p *Peer) { p.bad(seg(send(5, 0))); p.stay() },
	},
	{
		Name: "stays after a rejecting Reply", Rule: "iwarp.md 8: short wait, close", Side: Dials, raw: true, Slow: true, Want: rejected,
		run: func(p *Peer) { p.write(p.request(wire.FlagEnhanced|wire.FlagMarkers, 2, control, nil)); p.stay() },
	},
	{
		Name: "stays after a Terminate for its Reply", Rule: "iwarp.md 8: short wait, close", Side: Answers, raw: true, Slow: true,
		Want: notAReply,
		run:  func(p *Peer) { answersFrame(func(r *wire.Frame) { r.Revision = 3 })(p); p.stay() },
	},
	stalls("silent in an FPDU's length", func(p *Peer) { p.write([]byte{0}) }),
	stalls("silent in an FPDU's headers", func(p *Peer) { p.write(p.fpdu(seg(send(1, 0), 'x'))[:13]) }),
	stalls("silent in an FPDU's payload", func(p *Peer) { p.write(p.fpdu(seg(send(1, 0), zeros(100)...))[:60]) }),
	stalls("silent in an FPDU's CRC", func(p *Peer) { p.write(p.fpdu(seg(send(1, 0), 'a', 'b'))[:25]) }),
	stalls("silent between two segments of a Send", func(p *Peer) { p.good(seg(part(1, 0), 'x')) }),
	stalls("silent in a Send, after many empty Writes", func(p *Peer) {
		p.good(seg(part(1, 0), 'x'))
		for range 20 {
			p.good(write(0, 0, 0))
			time.Sleep(20 * time.Millisecond)
		}
	}),
}
