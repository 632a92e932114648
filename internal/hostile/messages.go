package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

var behindAnError = wantTerminate(ddp, untagged, 3, "MSN 2, should be 1")

// messages are exchanges with a wrong Send or another wrong untagged message.
var messages = []Exchange{
	offendExchange("Send on queue 1", "RFC 5041 4.3: QN", wantTerminate(ddp, untagged, 1, "queue 1"),
		newULPDU(wire.Header{Last: true, Opcode: wire.OpSend, QN: 1, MSN: 1})),
	offendExchange("Send on the last queue", "RFC 5041 4.3: QN", wantTerminate(ddp, untagged, 1, "queue 4294967295"),
		newULPDU(wire.Header{Last: true, Opcode: wire.OpSend, QN: 1<<32 - 1, MSN: 1})),
	offendExchange("Send with MSN 0", "RFC 5041 4.3: MSN begins at 1", wantTerminate(ddp, untagged, 3, "MSN 0"), newULPDU(sendHeader(0, 0))),
	offendExchange("Send with the wrong MSN", "RFC 5041 4.3: MSN", wantTerminate(ddp, untagged, 3, "MSN 3, should be 2"),
		newULPDU(sendHeader(3, 0)), newULPDU(sendHeader(1, 0), 'a')),
	offendExchange("Send with the last MSN", "RFC 5041 4.3: MSN", wantTerminate(ddp, untagged, 3, "MSN 4294967295"), newULPDU(sendHeader(1<<32-1, 0), 'x')),
	offendExchange("Send twice", "RFC 5041 4.3: MSN", wantTerminate(ddp, untagged, 3, "MSN 1, should be 2"),
		newULPDU(sendHeader(1, 0), 'a'), newULPDU(sendHeader(1, 0), 'a')),
	offendExchange("Send that begins at MO 4", "RFC 5041 4.3: MO", wantTerminate(ddp, untagged, 4, "MO 4"), newULPDU(sendHeader(1, 4), 'a')),
	offendExchange("Send that begins at the last MO", "RFC 5041 4.3: MO", wantTerminate(ddp, untagged, 4, "MO 4294967295"),
		newULPDU(sendHeader(1, 1<<32-1), 'a', 'b')),
	offendExchange("Send with a hole", "RFC 5041 4.3: MO", withStatus(wantTerminate(ddp, untagged, 4, "MO 9, should be 8"), general),
		newULPDU(sendHeader(1, 9), 'a'), newULPDU(sendPartHeader(1, 0), zeros(8)...)),
	offendExchange("Send that overlaps itself", "RFC 5041 4.3: MO", withStatus(wantTerminate(ddp, untagged, 4, "MO 7, should be 8"), general),
		newULPDU(sendHeader(1, 7), 'a'), newULPDU(sendPartHeader(1, 0), zeros(8)...)),
	offendExchange("Send that changes its opcode", "RFC 5040 4.1: one opcode per message", withStatus(wantTerminate(rdmap, operation, 6, "in the middle"), general),
		newULPDU(wire.Header{Last: true, Opcode: wire.OpSendSE, MSN: 1, MO: 1}), newULPDU(sendPartHeader(1, 0), 'a')),
	offendExchange("two Sends at a time", "RFC 5041 5.3: one message after the other", withStatus(wantTerminate(ddp, untagged, 3, "MSN 2, should be 1"), general),
		newULPDU(sendPartHeader(2, 0), 'b'), newULPDU(sendPartHeader(1, 0), 'a')),
	offendExchange("Send longer than its receive", "RFC 5041 8.2: length", tooManyBytes, newULPDU(sendHeader(1, 0), zeros(ReceiveLen+1)...)),
	offendExchange("Send of 65517 bytes", "RFC 5041 8.2: the longest FPDU", withStatus(wantTerminate(ddp, untagged, 5, "65517 bytes"), tooLong),
		newULPDU(sendHeader(1, 0), zeros(wire.MaxULPDU-wire.UntaggedLen)...)),
	offendExchange("Send longer than its receive by its second segment", "RFC 5041 8.2: length", tooManyBytes,
		newULPDU(sendHeader(1, ReceiveLen), 'x'), newULPDU(sendPartHeader(1, 0), zeros(ReceiveLen)...)),
	offendExchange("more Sends than receives", "RFC 5041 8.2: no buffer", noReceive,
		newULPDU(sendHeader(5, 0)), newULPDU(sendHeader(1, 0), 'a'), newULPDU(sendHeader(2, 0)), newULPDU(sendHeader(3, 0), 'c'), newULPDU(sendHeader(4, 0))),
	newExchange("Read Request in the middle of a Send that ends", "RFC 5041 5.3: queues are their own", orderly,
		goodStep(newULPDU(sendPartHeader(1, 0), 'a'), readReq(1, wire.ReadRequest{}), newULPDU(sendHeader(1, 1), 'b')),
		func(p *Peer) { p.fpduIn() }, // the RTR, or the Read Response
		fin),
	newExchange("MPA Request in the middle", "RFC 5044 7.1.2: one frame", wantBareTerminate(rdmap, operation, 5, "RDMAP version"),
		goodStep(append([]byte("A ID Req Frame"), zeros(0x4d50-14)...))), // "MP" is the length
	newExchange("right Sends behind a wrong one", "RFC 5040 7.2: nothing is taken behind an error", behindAnError,
		badStep(newULPDU(sendHeader(2, 0), 'a')), goodStep(newULPDU(sendHeader(1, 0), 'b'), newULPDU(sendHeader(2, 0), 'c'))),
	newExchange("Terminate behind a wrong Send", "RFC 5040 7.2: nothing is taken behind an error", behindAnError,
		badStep(newULPDU(sendHeader(2, 0), 'a')), goodStep(termMsg(0x12, 3, 0, 0))),
	newExchange("FIN behind a wrong Send", "RFC 5040 7.2: the Terminate still goes out", behindAnError,
		settle, badStep(newULPDU(sendHeader(2, 0), 'a')), fin),
	newExchange("reset behind a wrong Send", "RFC 5040 7.2: whatever comes first", anything,
		settle, badStep(newULPDU(sendHeader(2, 0), 'a')), reset),
}
