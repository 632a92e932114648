package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

// newULPDU makes a ULPDU.
func newULPDU(h wire.Header, payload ...byte) []byte {
	return append(wire.AppendHeader(nil, &h), payload...)
}

// sendHeader makes the header of the last segment of a Send.
func sendHeader(msn, mo uint32) wire.Header {
	return wire.Header{Last: true, Opcode: wire.OpSend, MSN: msn, MO: mo}
}

// sendPartHeader makes the header of a segment of a Send that is not the last one.
func sendPartHeader(msn, mo uint32) wire.Header {
	return wire.Header{Opcode: wire.OpSend, MSN: msn, MO: mo}
}

// writeULPDU makes the last segment of a Write, of n bytes.
func writeULPDU(stag uint32, to uint64, n int) []byte {
	return newULPDU(wire.Header{Tagged: true, Last: true, STag: stag, TO: to}, make([]byte, n)...)
}

// writePart makes a segment of a Write that is not the last one.
func writePart(stag uint32, to uint64, n int) []byte {
	return newULPDU(wire.Header{Tagged: true, STag: stag, TO: to}, make([]byte, n)...)
}

// readReq makes a Read Request.
func readReq(msn uint32, r wire.ReadRequest) []byte {
	return newULPDU(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: msn}, wire.AppendReadRequest(nil, &r)...)
}

// termMsg makes a Terminate message.
func termMsg(payload ...byte) []byte {
	return newULPDU(wire.Header{Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1}, payload...)
}

// zeros returns n zero bytes.
func zeros(n int) []byte { return make([]byte, n) }

// controlULPDU makes a ULPDU of n bytes that begins with the control bytes d and r.
func controlULPDU(d, r byte, n int) []byte { return append([]byte{d, r}, zeros(n-2)...) }
