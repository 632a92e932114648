package hostile

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// writeOverTime sends b so slowly that it exceeds a time limit for the whole, but none between two
// bytes.
func (p *Peer) writeOverTime(b []byte) {
	for i := range b {
		if _, err := p.conn.Write(b[i : i+1]); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// markSlow marks exchanges as Slow: only a time limit of the other side ends them.
func markSlow(list ...Exchange) []Exchange {
	for i := range list {
		list[i].Slow = true
	}
	return list
}

// stallExchange makes an exchange that stops in the middle of a message.
func stallExchange(name string, steps ...step) Exchange {
	return newExchange(name, "iwarp's Config.MessageTimeout: a message occupies its receive",
		Want{Outcome: Failed, Errno: unix.ETIMEDOUT, Text: "in the middle of a message"}, steps...)
}

// silences are exchanges in which the peer stops sending.
var silences = markSlow(
	dialExchange("silent from the start", "as siw: 5 s for a Request", ignored),
	dialExchange("silent in its Request's key", "as siw: 5 s for a Request", ignored, frameStep(plainRequest, cutTo(5))),
	dialExchange("silent in its Request's private data", "as siw: 5 s for a Request", ignored,
		frameStep(requestMessage(0, 1, control, 100), cutTo(100))),
	dialExchange("Request too slow", "as siw: 5 s for a Request, not for a byte of it", ignored,
		func(p *Peer) { p.writeOverTime(p.newRequest(0, 1, control, zeros(500))) }),
	dialExchange("silent after a Reply to peer-to-peer", "RFC 6581 9.2: RTR", outOfPatience,
		frameStep(requestMessage(wire.FlagEnhanced, 2, p2pControl(true, true), 0)), readFrame),
	dialExchange("silent in its first FPDU", "RFC 6581 9.2: RTR", outOfPatience, beginStep(p2pControl(true, true), fragmentStep(writeULPDU(1, 0, 0), 17))),
	answerExchange("no Reply", "as siw: 10 s for a Reply", outOfPatience, readFrame),
	answerExchange("Request not even read", "as siw: 10 s for a Reply", outOfPatience),
	answerExchange("half a Reply", "as siw: 10 s for a Reply", outOfPatience, replyStep(cutTo(22))),
	answerExchange("Reply too slow", "as siw: 10 s for a Reply", outOfPatience, repliesPrivately(200, (*Peer).writeOverTime)),
	newExchange("stays after our Terminate", "short wait, close", wantTerminate(ddp, untagged, 3, "MSN 5"), badStep(newULPDU(sendHeader(5, 0))), stay),
	dialExchange("stays after a rejecting Reply", "short wait, close", rejected,
		frameStep(requestMessage(wire.FlagEnhanced|wire.FlagMarkers, 2, control, 0)), stay),
	answerExchange("stays after a Terminate for its Reply", "short wait, close", notAReply,
		repliesFrame(func(r *wire.Frame) { r.Revision = 3 }), stay),
	stallExchange("silent in an FPDU's length", writeStep([]byte{0})),
	stallExchange("silent in an FPDU's headers", fragmentStep(newULPDU(sendHeader(1, 0), 'x'), 13)),
	stallExchange("silent in an FPDU's payload", fragmentStep(newULPDU(sendHeader(1, 0), zeros(100)...), 60)),
	stallExchange("silent in an FPDU's CRC", fragmentStep(newULPDU(sendHeader(1, 0), 'a', 'b'), 25)),
	stallExchange("silent between two segments of a Send", goodStep(newULPDU(sendPartHeader(1, 0), 'x'))),
	stallExchange("silent in a Send, after many empty Writes", goodStep(newULPDU(sendPartHeader(1, 0), 'x')), func(p *Peer) {
		for range 20 {
			p.sendGood(writeULPDU(0, 0, 0))
			time.Sleep(20 * time.Millisecond)
		}
	}),
	knowingExchange("Reads whose answers nobody reads", "TCP_USER_TIMEOUT: a window that stays closed",
		Want{Outcome: Failed, Errno: unix.ETIMEDOUT}, func(p *Peer) {
			_ = p.conn.SetReadBuffer(4096)
			g := p.o.Regions.Both
			for i := range uint32(Depth) {
				p.sendGood(readReq(i+1, wire.ReadRequest{Size: g.Len, SourceSTag: g.STag, SourceTO: g.TO}))
			}
			p.waitIdle()
		}),
)
