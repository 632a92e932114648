package hostile

import "github.com/rdmactor/rdmactor/iwarp/wire"

// many is how often a flood says its thing.
const many = 10000

// flood sends the ULPDUs that add appends, many times, without a pause. It throws no memory away:
// who looks at the other side's may live in the same process.
func (p *Peer) flood(add func(b []byte, i uint32) []byte) {
	const chunk = 64 << 10
	b, f := make([]byte, 0, chunk+256), wire.FPDU{ULPDU: make([]byte, 0, 128)}
	for i := range uint32(many) {
		f.ULPDU = add(f.ULPDU[:0], i)
		if p.crc {
			f.CRC = f.Checksum()
		}
		if b = wire.AppendFPDU(b, &f); len(b) > chunk {
			p.write(b)
			b = b[:0]
		}
	}
	p.write(b)
}

// again is the same ULPDU each time.
func again(u []byte) func([]byte, uint32) []byte {
	return func(b []byte, _ uint32) []byte { return append(b, u...) }
}

// sends is Sends of the bytes x, one after the other.
func sends(x ...byte) func([]byte, uint32) []byte {
	return func(b []byte, i uint32) []byte {
		h := send(i+1, 0)
		return append(wire.AppendHeader(b, &h), x...)
	}
}

// readReqs is Read Requests for r, one after the other.
func readReqs(r wire.ReadRequest) func([]byte, uint32) []byte {
	return func(b []byte, i uint32) []byte {
		h := wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: i + 1}
		return wire.AppendReadRequest(wire.AppendHeader(b, &h), &r)
	}
}

// pour sends n zeros.
func (p *Peer) pour(n int) {
	chunk := zeros(64 << 10)
	for ; n > 0; n -= len(chunk) {
		p.write(chunk)
	}
}

// floods is too much of a good thing, and too much of a bad one.
var floods = []Exchange{
	{
		Name: "flood of empty Writes", Rule: "RFC 5040: length 0 touches nothing", Want: Want{Told: Orderly},
		run: func(p *Peer) {
			p.flood(func(b []byte, i uint32) []byte {
				h := wire.Header{Tagged: true, Last: true, STag: i, TO: uint64(i) << 40}
				return wire.AppendHeader(b, &h)
			})
			p.fin()
		},
	},
	{
		Name: "flood of empty Reads", Rule: "RFC 5040 6.5.2: IRD", Want: bare(rdmap, operation, 7, "outstanding"),
		run: func(p *Peer) { p.flood(readReqs(wire.ReadRequest{})) },
	},
	{
		Name: "flood of Terminates", Rule: "RFC 5040 4.8: one ends it", Want: Want{Told: Failed, Term: Term{mpa, 0, 1}, ByPeer: true},
		run: func(p *Peer) { p.flood(again(termMsg(0x20, 1, 0, 0))) },
	},
	{
		Name: "flood of Sends of 1 byte", Rule: "iwarp.md 10: no receive posted", Want: refusal(ddp, untagged, 2, "no receive posted"),
		run: func(p *Peer) {
			p.seen.Offending = seg(send(Receives+1, 0), 'x')
			p.flood(sends('x'))
		},
	},
	{
		Name: "flood of empty segments in one Send", Rule: "RFC 5041 5.1: nothing forbids them", Want: Want{Told: Orderly},
		run: func(p *Peer) {
			p.flood(again(seg(part(1, 0))))
			p.good(seg(send(1, 0), 'x'))
			p.fin()
		},
	},
	{
		Name: "flood of segments of 1 byte in one Send", Rule: "RFC 5041 8.2: length",
		Want: hit(refusal(ddp, untagged, 5, "1025 bytes"), tooLong),
		run: func(p *Peer) {
			p.seen.Offending = seg(part(1, ReceiveLen), 'x')
			p.flood(func(b []byte, i uint32) []byte {
				h := part(1, i)
				return append(wire.AppendHeader(b, &h), 'x')
			})
		},
	},
	{
		Name: "flood of empty FPDUs", Rule: "RFC 5044 4.1: length", Want: bare(mpa, 0, 3, "FPDU of 0 bytes"),
		run: func(p *Peer) { p.flood(again(nil)) },
	},
	{
		Name: "8 MiB behind a wrong FPDU", Rule: "iwarp.md 8: read and discard", Want: refusal(ddp, untagged, 3, "MSN 2"),
		run: func(p *Peer) {
			p.bad(seg(send(2, 0)))
			p.pour(8 << 20)
		},
	},
	{
		Name: "8 MiB instead of a Request", Rule: "RFC 5044 7.1.1: key", Side: Dials, raw: true, Want: ignored,
		run: func(p *Peer) { p.pour(8 << 20) },
	},
}
