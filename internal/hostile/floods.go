package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

// many is the number of messages in a flood.
const many = 10000

// floodULPDUs sends many ULPDUs without a pause. add appends each to a buffer. It reuses the
// buffer, because a test may measure the other side's memory in the same process.
func (p *Peer) floodULPDUs(add func(b []byte, i uint32) []byte) {
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

// sameULPDU returns a function for floodULPDUs that makes the same ULPDU each time.
func sameULPDU(u []byte) func([]byte, uint32) []byte {
	return func(b []byte, _ uint32) []byte { return append(b, u...) }
}

// makeSends returns a function for floodULPDUs that makes Sends of the bytes x.
func makeSends(x ...byte) func([]byte, uint32) []byte {
	return func(b []byte, i uint32) []byte {
		h := sendHeader(i+1, 0)
		return append(wire.AppendHeader(b, &h), x...)
	}
}

// readReqs returns a function for floodULPDUs that makes Read Requests for r.
func readReqs(r wire.ReadRequest) func([]byte, uint32) []byte {
	return func(b []byte, i uint32) []byte {
		h := wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: i + 1}
		return wire.AppendReadRequest(wire.AppendHeader(b, &h), &r)
	}
}

// pourZeros sends 8 MiB of zeros.
func pourZeros(p *Peer) {
	chunk := zeros(64 << 10)
	for range 8 << 20 / len(chunk) {
		p.write(chunk)
	}
}

// floodStep returns Peer.floodULPDUs as a step.
func floodStep(add func(b []byte, i uint32) []byte) step { return func(p *Peer) { p.floodULPDUs(add) } }

// floods are exchanges with too many good messages, and with too many bad ones.
var floods = []Exchange{
	newExchange("flood of empty Writes", "RFC 5040: length 0 touches nothing", orderly,
		floodStep(func(b []byte, i uint32) []byte {
			h := wire.Header{Tagged: true, Last: true, STag: i, TO: uint64(i) << 40}
			return wire.AppendHeader(b, &h)
		}), fin),
	newExchange("flood of empty Reads", "RFC 5040 6.5.2: IRD", wantBareTerminate(rdmap, operation, 7, "outstanding"), floodStep(readReqs(wire.ReadRequest{}))),
	newExchange("flood of Terminates", "RFC 5040 4.8: one ends it", Want{Outcome: Failed, Term: Term{mpa, 0, 1}, ByPeer: true},
		floodStep(sameULPDU(termMsg(0x20, 1, 0, 0)))),
	newExchange("flood of Sends of 1 byte", "no receive posted", noReceive,
		offendingStep(newULPDU(sendHeader(Receives+1, 0), 'x')), floodStep(makeSends('x'))),
	newExchange("flood of empty segments in one Send", "RFC 5041 5.1: nothing forbids them", orderly,
		floodStep(sameULPDU(newULPDU(sendPartHeader(1, 0)))), goodStep(newULPDU(sendHeader(1, 0), 'x')), fin),
	newExchange("flood of segments of 1 byte in one Send", "RFC 5041 8.2: length", tooManyBytes,
		offendingStep(newULPDU(sendPartHeader(1, ReceiveLen), 'x')),
		floodStep(func(b []byte, i uint32) []byte {
			h := sendPartHeader(1, i)
			return append(wire.AppendHeader(b, &h), 'x')
		})),
	newExchange("flood of empty FPDUs", "RFC 5044 4.1: length", wantBareTerminate(mpa, 0, 3, "FPDU of 0 bytes"), floodStep(sameULPDU(nil))),
	newExchange("8 MiB behind a wrong FPDU", "read and discard", wantTerminate(ddp, untagged, 3, "MSN 2"),
		badStep(newULPDU(sendHeader(2, 0))), pourZeros),
	dialExchange("8 MiB instead of a Request", "RFC 5044 7.1.1: key", ignored, pourZeros),
}
