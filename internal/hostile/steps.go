package hostile

import "github.com/rdmactor/rdmactor/iwarp/wire"

// step is a part of what a hostile peer does.
type step = func(*Peer)

var fin, reset, settle, stay step = (*Peer).fin, (*Peer).reset, (*Peer).settle, (*Peer).stay

// readFrame reads the other side's frame, whatever it is.
func readFrame(p *Peer) { p.frame() }

// does is an exchange that takes steps behind a set-up as it should be.
func does(name, rule string, w Want, steps ...step) Exchange {
	return Exchange{Name: name, Rule: rule, Want: w, run: func(p *Peer) {
		for _, s := range steps {
			s(p)
		}
	}}
}

// dials is an exchange of an initiator, whose steps are the set-up too.
func dials(name, rule string, w Want, steps ...step) Exchange {
	x := does(name, rule, w, steps...)
	x.Side, x.raw = Dials, true
	return x
}

// answers is an exchange of a responder, whose steps are the set-up too.
func answers(name, rule string, w Want, steps ...step) Exchange {
	x := does(name, rule, w, steps...)
	x.Side, x.raw = Answers, true
	return x
}

// offends is an exchange that sends what is right and then what is wrong.
func offends(name, rule string, w Want, wrong []byte, right ...[]byte) Exchange {
	return does(name, rule, w, good(right...), bad(wrong))
}

// good sends FPDUs that are right.
func good(ulpdus ...[]byte) step { return func(p *Peer) { p.good(ulpdus...) } }

// bad sends an FPDU that is wrong.
func bad(ulpdu []byte) step { return func(p *Peer) { p.bad(ulpdu) } }

// offending names the wrong ULPDU among those that the next step sends.
func offending(ulpdu []byte) step { return func(p *Peer) { p.seen.Offending = ulpdu } }

// writes sends bytes that are no FPDU.
func writes(b []byte) step { return func(p *Peer) { p.write(b) } }

// fragment sends the first n bytes of an FPDU.
func fragment(ulpdu []byte, n int) step { return func(p *Peer) { p.write(p.fpdu(ulpdu)[:n]) } }

// message makes the bytes of a frame.
type message = func(p *Peer) []byte

// plain is the Request that is right.
func plain(p *Peer) []byte { return p.request(wire.FlagEnhanced, 2, control, nil) }

// request is a Request with that many bytes of private data.
func request(flags wire.Flags, rev uint8, c wire.Control, private int) message {
	return func(p *Peer) []byte { return p.request(flags, rev, c, zeros(private)) }
}

// p2p is a control word that asks for peer-to-peer with that RTR.
func p2p(write, read bool) wire.Control {
	return wire.Control{PeerToPeer: true, RTRWrite: write, RTRRead: read, IRD: Depth, ORD: Depth}
}

// change changes a frame's bytes.
type change = func(b []byte) []byte

// set overwrites byte i.
func set(i int, v byte) change {
	return func(b []byte) []byte {
		b[i] = v
		return b
	}
}

// cut leaves the first n bytes.
func cut(n int) change { return func(b []byte) []byte { return b[:n] } }

// followedBy appends bytes.
func followedBy(more []byte) change { return func(b []byte) []byte { return append(b, more...) } }

// twice says it again.
func twice(b []byte) []byte { return append(b, b...) }

func changed(b []byte, changes []change) []byte {
	for _, c := range changes {
		b = c(b)
	}
	return b
}

// says sends a frame (MPA's first).
func says(m message, changes ...change) step {
	return func(p *Peer) { p.write(changed(m(p), changes)) }
}

// begins sends a Request. It goes on if that is accepted.
func begins(c wire.Control, steps ...step) step {
	return func(p *Peer) {
		if !p.begin(wire.FlagEnhanced, 2, c) {
			return
		}
		for _, s := range steps {
			s(p)
		}
	}
}

// answersWith reads the Request, and sends reply's bytes.
func answersWith(reply func(p *Peer, f *wire.Frame) []byte) step {
	return func(p *Peer) {
		if f := p.frame(); f != nil {
			p.crc = p.o.CRC || f.Flags&wire.FlagCRC != 0
			p.write(reply(p, f))
		}
	}
}

// replies reads the Request, and sends the right Reply with some of its bytes changed.
func replies(changes ...change) step {
	return answersWith(func(p *Peer, f *wire.Frame) []byte { return changed(p.reply(f), changes) })
}

// repliesFrame is replies with a frame that says something else than the right one.
func repliesFrame(alter func(r *wire.Frame)) step {
	return answersWith(func(p *Peer, f *wire.Frame) []byte {
		r, _, _ := wire.ConsumeFrame(p.reply(f))
		alter(&r)
		return wire.AppendFrame(nil, &r)
	})
}
