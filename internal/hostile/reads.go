package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// odd makes a correct Read Request in a wrong segment.
func odd(h wire.Header, more ...byte) func(*Regions) []byte {
	h.Opcode = wire.OpReadRequest
	return func(r *Regions) []byte {
		return seg(h, append(wire.AppendReadRequest(nil, &wire.ReadRequest{Size: 1, SourceSTag: r.Both.STag, SourceTO: r.Both.TO}), more...)...)
	}
}

// reads are exchanges with Read Requests that are wrong, or look wrong.
var reads = []Exchange{
	aims("Read of STag 0", "RFC 5040 8.2: STag", unreadable, from(other(0), 0, 1)),
	aims("Read of STag 1", "RFC 5040 8.2: STag", unreadable, from(other(1), 0, 1)),
	aims("Read with the wrong key", "RFC 5040 8.2: STag", unreadable, from(key, 0, 1)),
	aims("Read of memory that is freed", "RFC 5040 8.2: STag", unreadable, from(freed, 0, 1)),
	aims("Read of memory that was taken back", "RFC 5040 8.2: STag", unreadable, from(both, 0, 1), takeBack(wire.OpSendInvalidate, 1, both)),
	aims("Read of another protection domain", "RFC 5040 8.2: stream", refusal(rdmap, protection, 3, ""), from(foreign, 0, 1)),
	aims("Read of memory for writing", "RFC 5040 8.2: access", noAccess, from(writeOnly, 0, 1)),
	aims("Read of memory of its owner's own", "RFC 5040 8.2: access", noAccess, from(local, 0, 1)),
	aims("Read one byte too early", "RFC 5040 8.2: base", outside, from(both, -1, 2)),
	aims("Read behind the end", "RFC 5040 8.2: bounds", outside, from(both, end, 1)),
	aims("Read over the end", "RFC 5040 8.2: bounds", outside, from(both, end-1, 2)),
	aims("Read of 4 GiB", "RFC 5040 8.2: bounds", outside, from(both, 0, 1<<32-1)),
	aims("Read over the end of all addresses", "RFC 5040 8.2: wrap", refusal(rdmap, protection, 4, ""),
		func(r *Regions) []byte {
			return readReq(1, wire.ReadRequest{Size: 2, SourceSTag: r.Both.STag, SourceTO: 1<<64 - 1})
		}),
	aims("Read Request on queue 0", "RFC 5041 4.3: QN", refusal(ddp, untagged, 1, "queue 0"), odd(wire.Header{Last: true, MSN: 1})),
	aims("Read Request on queue 2", "RFC 5041 4.3: QN", refusal(ddp, untagged, 1, "queue 2"), odd(wire.Header{Last: true, QN: 2, MSN: 1})),
	aims("Read Request with MSN 0", "RFC 5041 4.3: MSN", refusal(ddp, untagged, 3, "MSN 0"), odd(wire.Header{Last: true, QN: 1})),
	aims("Read Request with MSN 2", "RFC 5041 4.3: MSN", refusal(ddp, untagged, 3, "MSN 2"), odd(wire.Header{Last: true, QN: 1, MSN: 2})),
	aims("Read Request twice", "RFC 5041 4.3: MSN", refusal(ddp, untagged, 3, "MSN 1, should be 2"), from(both, 0, 1), from(both, 0, 1)),
	aims("Read Request at MO 28", "RFC 5041 4.3: MO", refusal(ddp, untagged, 4, "MO 28"), odd(wire.Header{Last: true, QN: 1, MSN: 1, MO: 28})),
	aims("Read Request with payload", "RFC 5040 4.4: 28 bytes", refusal(ddp, untagged, 5, ""), odd(wire.Header{Last: true, QN: 1, MSN: 1}, 'x')),
	aims("Read Request in two segments", "RFC 5040 4.4: 28 bytes", refusal(ddp, untagged, 5, ""), odd(wire.Header{QN: 1, MSN: 1})),
	knows("more Reads than it said", "RFC 5040 6.5.2: IRD", bare(rdmap, operation, 7, "outstanding"), func(p *Peer) {
		g := p.o.Regions.Both
		p.flood(readReqs(wire.ReadRequest{Size: g.Len, SourceSTag: g.STag, SourceTO: g.TO}))
	}),
	knows("empty Read of anything", "RFC 5040: length 0 checks nothing", orderly, func(p *Peer) {
		p.good(readReq(1, wire.ReadRequest{SinkSTag: 9, SinkTO: 1 << 63, SourceSTag: p.o.Regions.Freed.STag, SourceTO: 1<<64 - 1}))
		if h, _, ok := p.response(); !ok || h.STag != 9 || h.TO != 1<<63 || !h.Last {
			p.wrong("Read Response %+v, %t", h, ok)
		}
	}, fin),
	knows("Read of all of it", "RFC 5040 5.4: as it should be", orderly, func(p *Peer) {
		p.good(from(readOnly, 0, end)(&p.o.Regions))
		if h, b, ok := p.response(); !ok || h.STag != 7 || h.TO != 0 || len(b) != end {
			p.wrong("Read Response %+v of %d bytes, %t", h, len(b), ok)
		}
	}, fin),
}

// response reads the other side's next Read Response.
func (p *Peer) response() (wire.Header, []byte, bool) {
	for {
		h, b, ok := p.fpduIn()
		if !ok || h.Opcode == wire.OpReadResponse {
			return h, b, ok
		}
	}
}

// asked reads the victim's Read Request.
func (p *Peer) asked() (r wire.ReadRequest, ok bool) {
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

// responds makes an exchange that answers a Read of readLen bytes with right, and then with wrong.
func responds(name string, w Want, wrong func(r wire.ReadRequest) []byte, right ...func(r wire.ReadRequest) []byte) Exchange {
	return readFrom(name, "RFC 5040 5.4: Read Response", w, answersAsked("Read Request", w, wrong, right))
}

// readFrom makes an exchange whose victim Reads readLen bytes.
func readFrom(name, rule string, w Want, steps ...step) Exchange {
	x := does(name, rule, w, steps...)
	x.Reads = readLen
	return x
}

// answersAsked makes a step that answers the victim's Read Request.
func answersAsked(what string, w Want, last func(r wire.ReadRequest) []byte, before []func(r wire.ReadRequest) []byte) step {
	return func(p *Peer) {
		r, ok := p.asked()
		if !ok {
			p.wrong("no %s came", what)
			return
		}
		for _, make := range before {
			p.good(make(r))
		}
		p.last(w, last(r))
	}
}

// readLen is how many bytes the victim Reads.
const readLen = 64

// respond makes a Read Response of n bytes to stag+ds, off bytes from its correct start.
func respond(ds uint32, off uint64, n int, last bool) func(wire.ReadRequest) []byte {
	return func(r wire.ReadRequest) []byte {
		return seg(wire.Header{Tagged: true, Last: last, Opcode: wire.OpReadResponse, STag: r.SinkSTag + ds, TO: r.SinkTO + off}, zeros(n)...)
	}
}

// readResponses are exchanges with wrong Read Responses.
var readResponses = []Exchange{
	does("Read Response nobody asked for", "RFC 5040 5.4", unasked,
		settle, bad(seg(wire.Header{Tagged: true, Last: true, Opcode: wire.OpReadResponse}, 'x'))),
	responds("Read Response to another STag", noSTag, respond(1, 0, readLen, true)),
	responds("Read Response too early in the buffer", noBounds, respond(0, 1<<64-1, readLen, true)),
	responds("Read Response too late in the buffer", noBounds, respond(0, 1, readLen-1, true)),
	responds("Read Response too long", noBounds, respond(0, 0, readLen+1, true)),
	responds("Read Response too short", noBounds, respond(0, 0, readLen-1, true)),
	responds("Read Response without bytes", noBounds, respond(0, 0, 0, true)),
	responds("Read Response with a hole", noBounds, respond(0, 33, 31, true), respond(0, 0, 32, false)),
	responds("Read Response too long by its second segment", noBounds, respond(0, 32, 33, true), respond(0, 0, 32, false)),
	responds("Read Response twice", unasked, respond(0, 0, readLen, true), respond(0, 0, readLen, true)),
	readFrom("Terminate instead of a Read Response", "RFC 5040 4.8",
		Want{Outcome: Failed, Errno: unix.ECONNRESET, Term: Term{rdmap, protection, 1}, ByPeer: true},
		func(p *Peer) { p.asked() }, good(termMsg(1, 1, 0, 0))),
	readFrom("FIN in a Read Response", "RFC 5044 7.3: cut off", cutOff, func(p *Peer) {
		if r, ok := p.asked(); ok {
			p.good(respond(0, 0, 32, false)(r))
		}
	}, fin),
}
