package hostile

import "github.com/rdmactor/rdmactor/iwarp/wire"

// many is how often a flood says its thing.
const many = 10000

// flood sends what make has, many times, in one go.
func (p *Peer) flood(make func(i uint32) []byte) {
	var b []byte
	for i := range uint32(many) {
		b = append(b, p.fpdu(make(i))...)
	}
	p.write(b)
}

// floods is too much of a good thing, and too much of a bad one.
var floods = []Exchange{
	{
		Name: "flood of empty Writes", Rule: "RFC 5040: length 0 touches nothing", Want: Want{Told: Orderly},
		run: func(p *Peer) {
			p.flood(func(i uint32) []byte { return write(i, uint64(i)<<40, 0) })
			p.fin()
		},
	},
	{
		Name: "flood of empty Reads", Rule: "RFC 5040 6.5.2: IRD", Want: bare(rdmap, operation, 7, "outstanding"),
		run: func(p *Peer) { p.flood(func(i uint32) []byte { return readReq(i+1, wire.ReadRequest{}) }) },
	},
	{
		Name: "flood of Terminates", Rule: "RFC 5040 4.8: one ends it", Want: Want{Told: Failed, Term: Term{mpa, 0, 1}, ByPeer: true},
		run: func(p *Peer) { p.flood(func(uint32) []byte { return termMsg(0x20, 1, 0, 0) }) },
	},
	{
		Name: "flood of Sends of 1 byte", Rule: "iwarp.md 10: no receive posted", Want: refusal(ddp, untagged, 2, "no receive posted"),
		run: func(p *Peer) {
			p.seen.Offending = seg(send(Receives+1, 0), 'x')
			p.flood(func(i uint32) []byte { return seg(send(i+1, 0), 'x') })
		},
	},
	{
		Name: "flood of empty segments in one Send", Rule: "RFC 5041 5.1: nothing forbids them", Want: Want{Told: Orderly},
		run: func(p *Peer) {
			p.flood(func(uint32) []byte { return seg(part(1, 0)) })
			p.good(seg(send(1, 0), 'x'))
			p.fin()
		},
	},
	{
		Name: "flood of segments of 1 byte in one Send", Rule: "RFC 5041 8.2: length",
		Want: hit(refusal(ddp, untagged, 5, "1025 bytes"), tooLong),
		run: func(p *Peer) {
			p.seen.Offending = seg(part(1, ReceiveLen), 'x')
			p.flood(func(i uint32) []byte { return seg(part(1, i), 'x') })
		},
	},
	{
		Name: "flood of empty FPDUs", Rule: "RFC 5044 4.1: length", Want: bare(mpa, 0, 3, "FPDU of 0 bytes"),
		run: func(p *Peer) { p.flood(func(uint32) []byte { return nil }) },
	},
	{
		Name: "8 MiB behind a wrong FPDU", Rule: "iwarp.md 8: read and discard", Want: refusal(ddp, untagged, 3, "MSN 2"),
		run: func(p *Peer) {
			p.bad(seg(send(2, 0)))
			p.write(zeros(8 << 20))
		},
	},
	{
		Name: "8 MiB instead of a Request", Rule: "RFC 5044 7.1.1: key", Side: Dials, raw: true, Want: ignored,
		run: asks(func(*Peer) []byte { return zeros(8 << 20) }),
	},
}
