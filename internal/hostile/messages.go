package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

var behindAnError = refusal(ddp, untagged, 3, "MSN 2, should be 1")

// messages are exchanges with a wrong Send or another wrong untagged message.
var messages = []Exchange{
	offends("Send on queue 1", "RFC 5041 4.3: QN", refusal(ddp, untagged, 1, "queue 1"),
		seg(wire.Header{Last: true, Opcode: wire.OpSend, QN: 1, MSN: 1})),
	offends("Send on the last queue", "RFC 5041 4.3: QN", refusal(ddp, untagged, 1, "queue 4294967295"),
		seg(wire.Header{Last: true, Opcode: wire.OpSend, QN: 1<<32 - 1, MSN: 1})),
	offends("Send with MSN 0", "RFC 5041 4.3: MSN begins at 1", refusal(ddp, untagged, 3, "MSN 0"), seg(send(0, 0))),
	offends("Send with the wrong MSN", "RFC 5041 4.3: MSN", refusal(ddp, untagged, 3, "MSN 3, should be 2"),
		seg(send(3, 0)), seg(send(1, 0), 'a')),
	offends("Send with the last MSN", "RFC 5041 4.3: MSN", refusal(ddp, untagged, 3, "MSN 4294967295"), seg(send(1<<32-1, 0), 'x')),
	offends("Send twice", "RFC 5041 4.3: MSN", refusal(ddp, untagged, 3, "MSN 1, should be 2"),
		seg(send(1, 0), 'a'), seg(send(1, 0), 'a')),
	offends("Send that begins at MO 4", "RFC 5041 4.3: MO", refusal(ddp, untagged, 4, "MO 4"), seg(send(1, 4), 'a')),
	offends("Send that begins at the last MO", "RFC 5041 4.3: MO", refusal(ddp, untagged, 4, "MO 4294967295"),
		seg(send(1, 1<<32-1), 'a', 'b')),
	offends("Send with a hole", "RFC 5041 4.3: MO", hit(refusal(ddp, untagged, 4, "MO 9, should be 8"), general),
		seg(send(1, 9), 'a'), seg(part(1, 0), zeros(8)...)),
	offends("Send that overlaps itself", "RFC 5041 4.3: MO", hit(refusal(ddp, untagged, 4, "MO 7, should be 8"), general),
		seg(send(1, 7), 'a'), seg(part(1, 0), zeros(8)...)),
	offends("Send that changes its opcode", "RFC 5040 4.1: one opcode per message", hit(refusal(rdmap, operation, 6, "in the middle"), general),
		seg(wire.Header{Last: true, Opcode: wire.OpSendSE, MSN: 1, MO: 1}), seg(part(1, 0), 'a')),
	offends("two Sends at a time", "RFC 5041 5.3: one message after the other", hit(refusal(ddp, untagged, 3, "MSN 2, should be 1"), general),
		seg(part(2, 0), 'b'), seg(part(1, 0), 'a')),
	offends("Send longer than its receive", "RFC 5041 8.2: length", tooManyBytes, seg(send(1, 0), zeros(ReceiveLen+1)...)),
	offends("Send of 65517 bytes", "RFC 5041 8.2: the longest FPDU", hit(refusal(ddp, untagged, 5, "65517 bytes"), tooLong),
		seg(send(1, 0), zeros(wire.MaxULPDU-wire.UntaggedLen)...)),
	offends("Send longer than its receive by its second segment", "RFC 5041 8.2: length", tooManyBytes,
		seg(send(1, ReceiveLen), 'x'), seg(part(1, 0), zeros(ReceiveLen)...)),
	offends("more Sends than receives", "RFC 5041 8.2: no buffer", noReceive,
		seg(send(5, 0)), seg(send(1, 0), 'a'), seg(send(2, 0)), seg(send(3, 0), 'c'), seg(send(4, 0))),
	does("Read Request in the middle of a Send that ends", "RFC 5041 5.3: queues are their own", orderly,
		good(seg(part(1, 0), 'a'), readReq(1, wire.ReadRequest{}), seg(send(1, 1), 'b')),
		func(p *Peer) { p.fpduIn() }, // the RTR, or the Read Response
		fin),
	does("MPA Request in the middle", "RFC 5044 7.1.2: one frame", bare(rdmap, operation, 5, "RDMAP version"),
		good(append([]byte("A ID Req Frame"), zeros(0x4d50-14)...))), // "MP" is the length
	does("right Sends behind a wrong one", "RFC 5040 7.2: nothing is taken behind an error", behindAnError,
		bad(seg(send(2, 0), 'a')), good(seg(send(1, 0), 'b'), seg(send(2, 0), 'c'))),
	does("Terminate behind a wrong Send", "RFC 5040 7.2: nothing is taken behind an error", behindAnError,
		bad(seg(send(2, 0), 'a')), good(termMsg(0x12, 3, 0, 0))),
	does("FIN behind a wrong Send", "RFC 5040 7.2: the Terminate still goes out", behindAnError,
		settle, bad(seg(send(2, 0), 'a')), fin),
	does("reset behind a wrong Send", "RFC 5040 7.2: whatever comes first", anything,
		settle, bad(seg(send(2, 0), 'a')), reset),
}
