package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

// many is the number of messages in a flood.
const many = 10000

// flood sends many ULPDUs without a pause. add appends each to a buffer. flood reuses the buffer,
// because a test may measure the other side's memory in the same process.
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

// again returns a function for flood that makes the same ULPDU each time.
func again(u []byte) func([]byte, uint32) []byte {
	return func(b []byte, _ uint32) []byte { return append(b, u...) }
}

// sends returns a function for flood that makes Sends of the bytes x.
func sends(x ...byte) func([]byte, uint32) []byte {
	return func(b []byte, i uint32) []byte {
		h := send(i+1, 0)
		return append(wire.AppendHeader(b, &h), x...)
	}
}

// readReqs returns a function for flood that makes Read Requests for r.
func readReqs(r wire.ReadRequest) func([]byte, uint32) []byte {
	return func(b []byte, i uint32) []byte {
		h := wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: i + 1}
		return wire.AppendReadRequest(wire.AppendHeader(b, &h), &r)
	}
}

// pour sends 8 MiB of zeros.
func pour(p *Peer) {
	chunk := zeros(64 << 10)
	for range 8 << 20 / len(chunk) {
		p.write(chunk)
	}
}

// flood is Peer.flood as a step.
func flood(add func(b []byte, i uint32) []byte) step { return func(p *Peer) { p.flood(add) } }

// floods are exchanges with too many good messages, and with too many bad ones.
var floods = []Exchange{
	does("flood of empty Writes", "RFC 5040: length 0 touches nothing", orderly,
		flood(func(b []byte, i uint32) []byte {
			h := wire.Header{Tagged: true, Last: true, STag: i, TO: uint64(i) << 40}
			return wire.AppendHeader(b, &h)
		}), fin),
	does("flood of empty Reads", "RFC 5040 6.5.2: IRD", bare(rdmap, operation, 7, "outstanding"), flood(readReqs(wire.ReadRequest{}))),
	does("flood of Terminates", "RFC 5040 4.8: one ends it", Want{Outcome: Failed, Term: Term{mpa, 0, 1}, ByPeer: true},
		flood(again(termMsg(0x20, 1, 0, 0)))),
	does("flood of Sends of 1 byte", "no receive posted", noReceive,
		offending(seg(send(Receives+1, 0), 'x')), flood(sends('x'))),
	does("flood of empty segments in one Send", "RFC 5041 5.1: nothing forbids them", orderly,
		flood(again(seg(part(1, 0)))), good(seg(send(1, 0), 'x')), fin),
	does("flood of segments of 1 byte in one Send", "RFC 5041 8.2: length", tooManyBytes,
		offending(seg(part(1, ReceiveLen), 'x')),
		flood(func(b []byte, i uint32) []byte {
			h := part(1, i)
			return append(wire.AppendHeader(b, &h), 'x')
		})),
	does("flood of empty FPDUs", "RFC 5044 4.1: length", bare(mpa, 0, 3, "FPDU of 0 bytes"), flood(again(nil))),
	does("8 MiB behind a wrong FPDU", "read and discard", refusal(ddp, untagged, 3, "MSN 2"),
		bad(seg(send(2, 0))), pour),
	dials("8 MiB instead of a Request", "RFC 5044 7.1.1: key", ignored, pour),
}
