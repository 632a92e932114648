package hostile

import "github.com/rdmactor/rdmactor/iwarp/wire"

// messages is every Send that is wrong among others (iwarp.md sections 4 and 10).
var messages = []Exchange{
	{
		Name: "Send on queue 1", Rule: "RFC 5041 4.3: QN", Want: refusal(ddp, untagged, 1, "queue 1"),
		run: simple(seg(wire.Header{Last: true, Opcode: wire.OpSend, QN: 1, MSN: 1})),
	},
	{
		Name: "Send on the last queue", Rule: "RFC 5041 4.3: QN", Want: refusal(ddp, untagged, 1, "queue 4294967295"),
		run: simple(seg(wire.Header{Last: true, Opcode: wire.OpSend, QN: 1<<32 - 1, MSN: 1})),
	},
	{
		Name: "Send with MSN 0", Rule: "RFC 5041 4.3: MSN begins at 1", Want: refusal(ddp, untagged, 3, "MSN 0"),
		run: simple(seg(send(0, 0))),
	},
	{
		Name: "Send with the wrong MSN", Rule: "RFC 5041 4.3: MSN", Want: refusal(ddp, untagged, 3, "MSN 3, should be 2"),
		run: simple(seg(send(3, 0)), seg(send(1, 0), 'a')),
	},
	{
		Name: "Send with the last MSN", Rule: "RFC 5041 4.3: MSN", Want: refusal(ddp, untagged, 3, "MSN 4294967295"),
		run: simple(seg(send(1<<32-1, 0), 'x')),
	},
	{
		Name: "Send twice", Rule: "RFC 5041 4.3: MSN", Want: refusal(ddp, untagged, 3, "MSN 1, should be 2"),
		run: simple(seg(send(1, 0), 'a'), seg(send(1, 0), 'a')),
	},
	{
		Name: "Send that begins at MO 4", Rule: "RFC 5041 4.3: MO", Want: refusal(ddp, untagged, 4, "MO 4"),
		run: simple(seg(send(1, 4), 'a')),
	},
	{
		Name: "Send that begins at the last MO", Rule: "RFC 5041 4.3: MO", Want: refusal(ddp, untagged, 4, "MO 4294967295"),
		run: simple(seg(send(1, 1<<32-1), 'a', 'b')),
	},
	{
		Name: "Send with a hole", Rule: "RFC 5041 4.3: MO", Want: hit(refusal(ddp, untagged, 4, "MO 9, should be 8"), general),
		run: simple(seg(send(1, 9), 'a'), seg(part(1, 0), zeros(8)...)),
	},
	{
		Name: "Send that overlaps itself", Rule: "RFC 5041 4.3: MO", Want: hit(refusal(ddp, untagged, 4, "MO 7, should be 8"), general),
		run: simple(seg(send(1, 7), 'a'), seg(part(1, 0), zeros(8)...)),
	},
	{
		Name: "Send that changes its opcode", Rule: "RFC 5040 4.1: one opcode per message",
		Want: hit(refusal(rdmap, operation, 6, "in the middle"), general),
		run:  simple(seg(wire.Header{Last: true, Opcode: wire.OpSendSE, MSN: 1, MO: 1}), seg(part(1, 0), 'a')),
	},
	{
		Name: "two Sends at a time", Rule: "RFC 5041 5.3: one message after the other",
		Want: hit(refusal(ddp, untagged, 3, "MSN 2, should be 1"), general),
		run:  simple(seg(part(2, 0), 'b'), seg(part(1, 0), 'a')),
	},
	{
		Name: "Send longer than its receive", Rule: "RFC 5041 8.2: length", Want: hit(refusal(ddp, untagged, 5, "1025 bytes"), tooLong),
		run: simple(seg(send(1, 0), zeros(ReceiveLen+1)...)),
	},
	{
		Name: "Send of 65517 bytes", Rule: "RFC 5041 8.2: the longest FPDU", Want: hit(refusal(ddp, untagged, 5, "65517 bytes"), tooLong),
		run: simple(seg(send(1, 0), zeros(wire.MaxULPDU-wire.UntaggedLen)...)),
	},
	{
		Name: "Send longer than its receive by its second segment", Rule: "RFC 5041 8.2: length",
		Want: hit(refusal(ddp, untagged, 5, "1025 bytes"), tooLong),
		run:  simple(seg(send(1, ReceiveLen), 'x'), seg(part(1, 0), zeros(ReceiveLen)...)),
	},
	{
		Name: "more Sends than receives", Rule: "RFC 5041 8.2: no buffer; iwarp.md 10",
		Want: refusal(ddp, untagged, 2, "no receive posted"),
		run:  simple(seg(send(5, 0)), seg(send(1, 0), 'a'), seg(send(2, 0)), seg(send(3, 0), 'c'), seg(send(4, 0))),
	},
	{
		Name: "Read Request in the middle of a Send that ends", Rule: "RFC 5041 5.3: queues are their own", Want: Want{Told: Orderly},
		run: func(p *Peer) {
			p.good(seg(part(1, 0), 'a'), readReq(1, wire.ReadRequest{}), seg(send(1, 1), 'b'))
			p.fpduIn() // the RTR, or the Read Response
			p.fin()
		},
	},
	{
		Name: "MPA Request in the middle", Rule: "RFC 5044 7.1.2: one frame", Want: bare(rdmap, operation, 5, "RDMAP version"),
		run: func(p *Peer) {
			b := p.fpdu(append([]byte("A ID Req Frame"), zeros(0x4d50-14)...)) // "MP" is the length
			p.write(b)
		},
	},
	{
		Name: "right Sends behind a wrong one", Rule: "RFC 5040 7.2: nothing is taken behind an error",
		Want: refusal(ddp, untagged, 3, "MSN 2, should be 1"),
		run: func(p *Peer) {
			p.bad(seg(send(2, 0), 'a'))
			p.good(seg(send(1, 0), 'b'), seg(send(2, 0), 'c'))
		},
	},
	{
		Name: "Terminate behind a wrong Send", Rule: "RFC 5040 7.2: nothing is taken behind an error",
		Want: refusal(ddp, untagged, 3, "MSN 2, should be 1"),
		run: func(p *Peer) {
			p.bad(seg(send(2, 0), 'a'))
			p.good(termMsg(0x12, 3, 0, 0))
		},
	},
	{
		Name: "FIN behind a wrong Send", Rule: "RFC 5040 7.2: the Terminate still goes out",
		Want: refusal(ddp, untagged, 3, "MSN 2, should be 1"),
		run: func(p *Peer) {
			p.settle()
			p.bad(seg(send(2, 0), 'a'))
			p.fin()
		},
	},
	{
		Name: "reset behind a wrong Send", Rule: "RFC 5040 7.2: whatever comes first", Want: Want{Told: Anything},
		run: func(p *Peer) {
			p.settle()
			p.bad(seg(send(2, 0), 'a'))
			p.reset()
		},
	},
}
