package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// oddReadRequest makes a correct Read Request in a wrong segment.
func oddReadRequest(h wire.Header, more ...byte) func(*Regions) []byte {
	h.Opcode = wire.OpReadRequest
	return func(r *Regions) []byte {
		return newULPDU(h, append(wire.AppendReadRequest(nil, &wire.ReadRequest{Size: 1, SourceSTag: r.Both.STag, SourceTO: r.Both.TO}), more...)...)
	}
}

// reads are exchanges with Read Requests that are wrong, or look wrong.
var reads = []Exchange{
	aimedExchange("Read of STag 0", "RFC 5040 8.2: STag", unreadable, readFromRegion(withSTag(0), 0, 1)),
	aimedExchange("Read of STag 1", "RFC 5040 8.2: STag", unreadable, readFromRegion(withSTag(1), 0, 1)),
	aimedExchange("Read with the wrong key", "RFC 5040 8.2: STag", unreadable, readFromRegion(withOtherKey, 0, 1)),
	aimedExchange("Read of memory that is freed", "RFC 5040 8.2: STag", unreadable, readFromRegion(freedRegion, 0, 1)),
	aimedExchange("Read of memory that was taken back", "RFC 5040 8.2: STag", unreadable, readFromRegion(bothRegion, 0, 1), takeBack(wire.OpSendInvalidate, 1, bothRegion)),
	aimedExchange("Read of another protection domain", "RFC 5040 8.2: stream", wantTerminate(rdmap, protection, 3, ""), readFromRegion(foreignRegion, 0, 1)),
	aimedExchange("Read of memory for writing", "RFC 5040 8.2: access", noAccess, readFromRegion(writeOnly, 0, 1)),
	aimedExchange("Read of memory of its owner's own", "RFC 5040 8.2: access", noAccess, readFromRegion(localRegion, 0, 1)),
	aimedExchange("Read one byte too early", "RFC 5040 8.2: base", outside, readFromRegion(bothRegion, -1, 2)),
	aimedExchange("Read behind the end", "RFC 5040 8.2: bounds", outside, readFromRegion(bothRegion, end, 1)),
	aimedExchange("Read over the end", "RFC 5040 8.2: bounds", outside, readFromRegion(bothRegion, end-1, 2)),
	aimedExchange("Read of 4 GiB", "RFC 5040 8.2: bounds", outside, readFromRegion(bothRegion, 0, 1<<32-1)),
	aimedExchange("Read over the end of all addresses", "RFC 5040 8.2: wrap", wantTerminate(rdmap, protection, 4, ""),
		func(r *Regions) []byte {
			return readReq(1, wire.ReadRequest{Size: 2, SourceSTag: r.Both.STag, SourceTO: 1<<64 - 1})
		}),
	aimedExchange("Read Request on queue 0", "RFC 5041 4.3: QN", wantTerminate(ddp, untagged, 1, "queue 0"), oddReadRequest(wire.Header{Last: true, MSN: 1})),
	aimedExchange("Read Request on queue 2", "RFC 5041 4.3: QN", wantTerminate(ddp, untagged, 1, "queue 2"), oddReadRequest(wire.Header{Last: true, QN: 2, MSN: 1})),
	aimedExchange("Read Request with MSN 0", "RFC 5041 4.3: MSN", wantTerminate(ddp, untagged, 3, "MSN 0"), oddReadRequest(wire.Header{Last: true, QN: 1})),
	aimedExchange("Read Request with MSN 2", "RFC 5041 4.3: MSN", wantTerminate(ddp, untagged, 3, "MSN 2"), oddReadRequest(wire.Header{Last: true, QN: 1, MSN: 2})),
	aimedExchange("Read Request twice", "RFC 5041 4.3: MSN", wantTerminate(ddp, untagged, 3, "MSN 1, should be 2"), readFromRegion(bothRegion, 0, 1), readFromRegion(bothRegion, 0, 1)),
	aimedExchange("Read Request at MO 28", "RFC 5041 4.3: MO", wantTerminate(ddp, untagged, 4, "MO 28"), oddReadRequest(wire.Header{Last: true, QN: 1, MSN: 1, MO: 28})),
	aimedExchange("Read Request with payload", "RFC 5040 4.4: 28 bytes", wantTerminate(ddp, untagged, 5, ""), oddReadRequest(wire.Header{Last: true, QN: 1, MSN: 1}, 'x')),
	aimedExchange("Read Request in two segments", "RFC 5040 4.4: 28 bytes", wantTerminate(ddp, untagged, 5, ""), oddReadRequest(wire.Header{QN: 1, MSN: 1})),
	knowingExchange("more Reads than it said", "RFC 5040 6.5.2: IRD", wantBareTerminate(rdmap, operation, 7, "outstanding"), func(p *Peer) {
		g := p.o.Regions.Both
		p.floodULPDUs(readReqs(wire.ReadRequest{Size: g.Len, SourceSTag: g.STag, SourceTO: g.TO}))
	}),
	knowingExchange("empty Read of anything", "RFC 5040: length 0 checks nothing", orderly, func(p *Peer) {
		p.sendGood(readReq(1, wire.ReadRequest{SinkSTag: 9, SinkTO: 1 << 63, SourceSTag: p.o.Regions.Freed.STag, SourceTO: 1<<64 - 1}))
		if h, _, ok := p.readResponse(); !ok || h.STag != 9 || h.TO != 1<<63 || !h.Last {
			p.recordWrong("Read Response %+v, %t", h, ok)
		}
	}, fin),
	knowingExchange("Read of all of it", "RFC 5040 5.4: as it should be", orderly, func(p *Peer) {
		p.sendGood(readFromRegion(readOnly, 0, end)(&p.o.Regions))
		if h, b, ok := p.readResponse(); !ok || h.STag != 7 || h.TO != 0 || len(b) != end {
			p.recordWrong("Read Response %+v of %d bytes, %t", h, len(b), ok)
		}
	}, fin),
}

// readResponse reads the other side's next Read Response.
func (p *Peer) readResponse() (wire.Header, []byte, bool) {
	for {
		h, b, ok := p.fpduIn()
		if !ok || h.Opcode == wire.OpReadResponse {
			return h, b, ok
		}
	}
}

// awaitReadRequest reads the victim's Read Request.
func (p *Peer) awaitReadRequest() (r wire.ReadRequest, ok bool) {
	for {
		h, b, ok := p.fpduIn()
		if !ok {
			return r, false
		}
		if h.Opcode == wire.OpReadRequest {
			r, _, err := wire.ConsumeReadRequest(b)
			return r, err == nil
		}
	}
}

// readExchange makes an exchange that answers a Read of readLen bytes with right, and then with
// wrong.
func readExchange(name string, w Want, wrong func(r wire.ReadRequest) []byte, right ...func(r wire.ReadRequest) []byte) Exchange {
	return readFrom(name, "RFC 5040 5.4: Read Response", w, answersAsked("Read Request", w, wrong, right))
}

// readFrom makes an exchange whose victim Reads readLen bytes.
func readFrom(name, rule string, w Want, steps ...step) Exchange {
	x := newExchange(name, rule, w, steps...)
	x.Reads = readLen
	return x
}

// answersAsked makes a step that answers the victim's Read Request.
func answersAsked(what string, w Want, last func(r wire.ReadRequest) []byte, before []func(r wire.ReadRequest) []byte) step {
	return func(p *Peer) {
		r, ok := p.awaitReadRequest()
		if !ok {
			p.recordWrong("no %s came", what)
			return
		}
		for _, make := range before {
			p.sendGood(make(r))
		}
		p.sendLast(w, last(r))
	}
}

// readLen is how many bytes the victim Reads.
const readLen = 64

// newResponse makes a Read Response of n bytes to stag+ds, off bytes from its correct start.
func newResponse(ds uint32, off uint64, n int, last bool) func(wire.ReadRequest) []byte {
	return func(r wire.ReadRequest) []byte {
		return newULPDU(wire.Header{Tagged: true, Last: last, Opcode: wire.OpReadResponse, STag: r.SinkSTag + ds, TO: r.SinkTO + off}, zeros(n)...)
	}
}

// readResponses are exchanges with wrong Read Responses.
var readResponses = []Exchange{
	newExchange("Read Response nobody asked for", "RFC 5040 5.4", unasked,
		settle, badStep(newULPDU(wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse}, 'x'))),
	readExchange("Read Response to another STag", noSTag, newResponse(1, 0, readLen, true)),
	readExchange("Read Response too early in the buffer", noBounds, newResponse(0, 1<<64-1, readLen, true)),
	readExchange("Read Response too late in the buffer", noBounds, newResponse(0, 1, readLen-1, true)),
	readExchange("Read Response too long", noBounds, newResponse(0, 0, readLen+1, true)),
	readExchange("Read Response too short", noBounds, newResponse(0, 0, readLen-1, true)),
	readExchange("Read Response without bytes", noBounds, newResponse(0, 0, 0, true)),
	readExchange("Read Response with a hole", noBounds, newResponse(0, 33, 31, true), newResponse(0, 0, 32, false)),
	readExchange("Read Response too long by its second segment", noBounds, newResponse(0, 32, 33, true), newResponse(0, 0, 32, false)),
	readExchange("Read Response twice", unasked, newResponse(0, 0, readLen, true), newResponse(0, 0, readLen, true)),
	readFrom("Terminate instead of a Read Response", "RFC 5040 4.8",
		Want{Outcome: Failed, Errno: unix.ECONNRESET, Term: Term{rdmap, protection, 1}, ByPeer: true},
		func(p *Peer) { p.awaitReadRequest() }, goodStep(termMsg(1, 1, 0, 0))),
	readFrom("FIN in a Read Response", "RFC 5044 7.3: cut off", cutOff, func(p *Peer) {
		if r, ok := p.awaitReadRequest(); ok {
			p.sendGood(newResponse(0, 0, 32, false)(r))
		}
	}, fin),
}
