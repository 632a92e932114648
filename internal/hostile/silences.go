package hostile

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// loris sends b so slowly that it exceeds a time limit for the whole, but none between two bytes.
func (p *Peer) loris(b []byte) {
	for i := range b {
		if _, err := p.conn.Write(b[i : i+1]); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// patiently marks exchanges as Slow: only a time limit of the other side ends them.
func patiently(list ...Exchange) []Exchange {
	for i := range list {
		list[i].Slow = true
	}
	return list
}

// stalls makes an exchange that stops in the middle of a message.
func stalls(name string, steps ...step) Exchange {
	return does(name, "iwarp's Config.MessageTimeout: a message occupies its receive",
		Want{Outcome: Failed, Errno: unix.ETIMEDOUT, Text: "in the middle of a message"}, steps...)
}

// silences are exchanges in which the peer stops sending.
var silences = patiently(
	dials("silent from the start", "as siw: 5 s for a Request", ignored),
	dials("silent in its Request's key", "as siw: 5 s for a Request", ignored, says(plain, cut(5))),
	dials("silent in its Request's private data", "as siw: 5 s for a Request", ignored,
		says(request(0, 1, control, 100), cut(100))),
	dials("Request too slow", "as siw: 5 s for a Request, not for a byte of it", ignored,
		func(p *Peer) { p.loris(p.request(0, 1, control, zeros(500))) }),
	dials("silent after a Reply to peer-to-peer", "RFC 6581 9.2: RTR", outOfPatience,
		says(request(wire.FlagEnhanced, 2, p2p(true, true), 0)), readFrame),
	dials("silent in its first FPDU", "RFC 6581 9.2: RTR", outOfPatience, begins(p2p(true, true), fragment(write(1, 0, 0), 17))),
	answers("no Reply", "as siw: 10 s for a Reply", outOfPatience, readFrame),
	answers("Request not even read", "as siw: 10 s for a Reply", outOfPatience),
	answers("half a Reply", "as siw: 10 s for a Reply", outOfPatience, replies(cut(22))),
	answers("Reply too slow", "as siw: 10 s for a Reply", outOfPatience, repliesPrivately(200, (*Peer).loris)),
	does("stays after our Terminate", "short wait, close", refusal(ddp, untagged, 3, "MSN 5"), bad(seg(send(5, 0))), stay),
	dials("stays after a rejecting Reply", "short wait, close", rejected,
		says(request(wire.FlagEnhanced|wire.FlagMarkers, 2, control, 0)), stay),
	answers("stays after a Terminate for its Reply", "short wait, close", notAReply,
		repliesFrame(func(r *wire.Frame) { r.Revision = 3 }), stay),
	stalls("silent in an FPDU's length", writes([]byte{0})),
	stalls("silent in an FPDU's headers", fragment(seg(send(1, 0), 'x'), 13)),
	stalls("silent in an FPDU's payload", fragment(seg(send(1, 0), zeros(100)...), 60)),
	stalls("silent in an FPDU's CRC", fragment(seg(send(1, 0), 'a', 'b'), 25)),
	stalls("silent between two segments of a Send", good(seg(part(1, 0), 'x'))),
	stalls("silent in a Send, after many empty Writes", good(seg(part(1, 0), 'x')), func(p *Peer) {
		for range 20 {
			p.good(write(0, 0, 0))
			time.Sleep(20 * time.Millisecond)
		}
	}),
	knows("Reads whose answers nobody reads", "TCP_USER_TIMEOUT: a window that stays closed",
		Want{Outcome: Failed, Errno: unix.ETIMEDOUT}, func(p *Peer) {
			_ = p.conn.SetReadBuffer(4096)
			g := p.o.Regions.Both
			for i := range uint32(Depth) {
				p.good(readReq(i+1, wire.ReadRequest{Size: g.Len, SourceSTag: g.STag, SourceTO: g.TO}))
			}
			p.stuck()
		}),
)
