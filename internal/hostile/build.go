package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// seg is a ULPDU.
func seg(h wire.Header, payload ...byte) []byte {
	return append(wire.AppendHeader(nil, &h), payload...)
}

// send is the header of the last segment of a Send.
func send(msn, mo uint32) wire.Header {
	return wire.Header{Last: true, Opcode: wire.OpSend, MSN: msn, MO: mo}
}

// part is the header of a segment that is not the last one.
func part(msn, mo uint32) wire.Header { return wire.Header{Opcode: wire.OpSend, MSN: msn, MO: mo} }

// write is the last segment of a Write of n bytes.
func write(stag uint32, to uint64, n int) []byte {
	return seg(wire.Header{Tagged: true, Last: true, STag: stag, TO: to}, make([]byte, n)...)
}

// writePart is a segment that is not the last one.
func writePart(stag uint32, to uint64, n int) []byte {
	return seg(wire.Header{Tagged: true, STag: stag, TO: to}, make([]byte, n)...)
}

// readReq is a Read Request.
func readReq(msn uint32, r wire.ReadRequest) []byte {
	return seg(wire.Header{Last: true, Opcode: wire.OpReadRequest, QN: 1, MSN: msn}, wire.AppendReadRequest(nil, &r)...)
}

// termMsg is a Terminate message.
func termMsg(payload ...byte) []byte {
	return seg(wire.Header{Last: true, Opcode: wire.OpTerminate, QN: 2, MSN: 1}, payload...)
}

// refusal is the end of a connection over a wrong segment: our Terminate with its headers.
func refusal(l wire.Layer, kind, code uint8, text string) Want {
	return Want{Told: Failed, Errno: unix.EPROTO, Term: Term{l, kind, code}, Copy: true, Text: text}
}

// bare is refusal without the headers.
func bare(l wire.Layer, kind, code uint8, text string) Want {
	w := refusal(l, kind, code, text)
	w.Copy = false
	return w
}

// simple makes a Run that sends what is right and then what is wrong.
func simple(wrong []byte, right ...[]byte) func(*Peer) {
	return func(p *Peer) {
		p.good(right...)
		p.bad(wrong)
	}
}

// bytes is a run of n zero bytes.
func zeros(n int) []byte { return make([]byte, n) }

const (
	general = verbs.StatusGeneral
	tooLong = verbs.StatusLocLen
)

// hit is w with the status of the work request that it hits.
func hit(w Want, s verbs.Status) Want {
	w.Hit = s
	return w
}

// from is a Read Request for n bytes, off bytes from the start of a region.
func from(pick func(r *Regions) Region, off int64, n uint32) func(*Regions) []byte {
	return func(r *Regions) []byte {
		g := pick(r)
		return readReq(1, wire.ReadRequest{SinkSTag: 7, Size: n, SourceSTag: g.STag, SourceTO: g.TO + uint64(off)})
	}
}
