package hostile

import (
	"fmt"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// segmentExchanges returns exchanges with every FPDU that has a wrong length or wrong control
// bytes.
func segmentExchanges() []Exchange {
	var list []Exchange
	add := func(name, rule string, wrong []byte, w Want) {
		list = append(list, offendExchange(name, rule, w, wrong, newULPDU(sendHeader(1, 0), 'o', 'k')))
	}
	add("empty FPDU", "RFC 5044 4.1: length", nil, wantBareTerminate(mpa, 0, 3, "FPDU of 0 bytes"))
	add("FPDU of 1 byte", "RFC 5044 4.1: length", []byte{0x41}, wantBareTerminate(mpa, 0, 3, "FPDU of 1 bytes"))
	for op := wire.OpWrite; op <= wire.OpTerminate; op++ {
		d, n := byte(0x41), wire.UntaggedLen
		switch {
		case op.Tagged():
			d, n = 0xc1, wire.TaggedLen
		case op == wire.OpReadRequest:
			n += wire.ReadRequestLen
		case op == wire.OpTerminate:
			n += 4
		}
		add(fmt.Sprintf("%v without the last byte of its header", op), "RFC 5041 4: header length", controlULPDU(d, 0x40|byte(op), n-1),
			wantBareTerminate(mpa, 0, 3, fmt.Sprintf("FPDU of %d bytes", n-1)))
		add(fmt.Sprintf("%v with T the wrong way round", op), "RFC 5040 4.1: tagged or untagged", controlULPDU(d^0x80, 0x40|byte(op), 60),
			wantBareTerminate(rdmap, operation, 6, "tagged flag"))
	}
	for _, v := range []byte{0, 2, 3} {
		add(fmt.Sprintf("DDP version %d in a Send", v), "RFC 5041 4.3: DV", controlULPDU(0x40|v, 0x43, 20), wantBareTerminate(ddp, untagged, 6, "DDP version"))
		add(fmt.Sprintf("DDP version %d in a Write", v), "RFC 5041 4.2: DV", controlULPDU(0xc0|v, 0x40, 20), wantBareTerminate(ddp, wire.DDPTagged, 4, "DDP version"))
		add(fmt.Sprintf("RDMAP version %d", v), "RFC 5040 4.1: RV", controlULPDU(0x41, v<<6|3, 20), wantBareTerminate(rdmap, operation, 5, "RDMAP version"))
	}
	for op := wire.OpImmediate; op <= wire.OpAtomicResponse; op++ {
		h := wire.Header{Last: true, Opcode: op, QN: op.Queue(), MSN: 1}
		add(fmt.Sprintf("%v, which nobody offered", op), "RFC 7306", newULPDU(h, zeros(52)...), wantTerminate(rdmap, operation, 6, "unexpected"))
	}
	for op := byte(12); op < 16; op++ {
		add(fmt.Sprintf("opcode %d", op), "RFC 5040 4.1: opcode", controlULPDU(0x41, 0x40|op, 40), wantBareTerminate(rdmap, operation, 6, "opcode"))
	}
	return list
}

// unusual are unusual exchanges that an endpoint must accept.
var unusual = []Exchange{
	newExchange("reserved bits of both control bytes", "RFC 5041 4.1: ignored", orderly, func(p *Peer) {
		u := newULPDU(sendHeader(1, 0), 'x')
		u[0], u[1] = u[0]|0x3c, u[1]|0x30
		p.sendGood(u)
	}, fin),
	newExchange("pad that is not zero", "RFC 5044 4.1: not looked at", orderly, func(p *Peer) {
		f := wire.FPDU{ULPDU: newULPDU(sendHeader(1, 0), 'x'), Pad: [3]byte{1, 2, 3}}
		if p.crc {
			f.CRC = f.Checksum()
		}
		p.write(wire.AppendFPDU(nil, &f))
	}, fin),
	newExchange("FPDU byte by byte", "RFC 5044 4: TCP cuts where it likes", orderly,
		func(p *Peer) { p.writeSlowly(p.frameULPDU(newULPDU(sendHeader(1, 0), zeros(100)...))) }, fin),
}

// checksumExchanges returns exchanges with a wrong CRC, in every place where there is one.
func checksumExchanges() (list []Exchange) {
	for _, broken := range []struct {
		name string
		at   int // in an FPDU with 5 bytes of payload: 2 + 18 + 5 + 3 + 4
		hit  verbs.Status
	}{
		{"its headers", 12, verbs.StatusSuccess},
		{"its payload", 22, general},
		{"its pad", 26, general},
		{"itself", 31, general},
		{"a version that is wrong, too", 3, verbs.StatusSuccess},
	} {
		x := newExchange("CRC does not suit "+broken.name, "RFC 5044 8: CRC", withStatus(wantBareTerminate(mpa, 0, 2, "CRC"), broken.hit), func(p *Peer) {
			b := p.frameULPDU(newULPDU(sendHeader(1, 0), 1, 2, 3, 4, 5))
			b[broken.at] ^= 0x80
			p.write(b)
		})
		x.CRC = true
		list = append(list, x)
	}
	return list
}
