package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

// step is one action of a hostile peer.
type step = func(*Peer)

var fin, reset, settle, stay step = (*Peer).fin, (*Peer).reset, (*Peer).settle, (*Peer).stay

// readFrame reads the other side's frame, and ignores its content.
func readFrame(p *Peer) { p.frame() }

// does makes an exchange with steps after a correct set-up.
func does(name, rule string, w Want, steps ...step) Exchange {
	return Exchange{Name: name, Rule: rule, Want: w, run: func(p *Peer) {
		for _, s := range steps {
			s(p)
		}
	}}
}

// dials makes an exchange of an initiator whose steps include the set-up.
func dials(name, rule string, w Want, steps ...step) Exchange {
	x := does(name, rule, w, steps...)
	x.Side, x.raw = Dials, true
	return x
}

// answers makes an exchange of a responder whose steps include the set-up.
func answers(name, rule string, w Want, steps ...step) Exchange {
	x := does(name, rule, w, steps...)
	x.Side, x.raw = Answers, true
	return x
}

// offends makes an exchange that sends the correct FPDUs right and then the wrong one.
func offends(name, rule string, w Want, wrong []byte, right ...[]byte) Exchange {
	return does(name, rule, w, good(right...), bad(wrong))
}

// good is Peer.good as a step.
func good(ulpdus ...[]byte) step { return func(p *Peer) { p.good(ulpdus...) } }

// bad is Peer.bad as a step.
func bad(ulpdu []byte) step { return func(p *Peer) { p.bad(ulpdu) } }

// offending records which ULPDU of the next step is the wrong one.
func offending(ulpdu []byte) step { return func(p *Peer) { p.seen.Offending = ulpdu } }

// writes makes a step that sends bytes that are not an FPDU.
func writes(b []byte) step { return func(p *Peer) { p.write(b) } }

// fragment makes a step that sends the first n bytes of an FPDU.
func fragment(ulpdu []byte, n int) step { return func(p *Peer) { p.write(p.fpdu(ulpdu)[:n]) } }

// message makes the bytes of a frame.
type message = func(p *Peer) []byte

// plain makes a correct Request.
func plain(p *Peer) []byte { return p.request(wire.FlagEnhanced, 2, control, nil) }

// request makes a Request with that many bytes of private data.
func request(flags wire.Flags, rev uint8, c wire.Control, private int) message {
	return func(p *Peer) []byte { return p.request(flags, rev, c, zeros(private)) }
}

// p2p returns a control word that asks for the peer-to-peer mode with that RTR.
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

// cut keeps only the first n bytes.
func cut(n int) change { return func(b []byte) []byte { return b[:n] } }

// followedBy appends bytes.
func followedBy(more []byte) change { return func(b []byte) []byte { return append(b, more...) } }

// twice appends the frame once more.
func twice(b []byte) []byte { return append(b, b...) }

func changed(b []byte, changes []change) []byte {
	for _, c := range changes {
		b = c(b)
	}
	return b
}

// says makes a step that sends an MPA frame with changes.
func says(m message, changes ...change) step {
	return func(p *Peer) { p.write(changed(m(p), changes)) }
}

// begins makes a step that sends a Request. It takes steps if the Request is accepted.
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

// answersWith makes a step that reads the Request, and sends the bytes of reply.
func answersWith(reply func(p *Peer, f *wire.Frame) []byte) step {
	return func(p *Peer) {
		if f := p.frame(); f != nil {
			p.crc = p.o.CRC || f.Flags&wire.FlagCRC != 0
			p.write(reply(p, f))
		}
	}
}

// replies makes a step that reads the Request, and sends the correct Reply with some of its bytes
// changed.
func replies(changes ...change) step {
	return answersWith(func(p *Peer, f *wire.Frame) []byte { return changed(p.reply(f), changes) })
}

// repliesFrame makes a step that reads the Request, and sends the correct Reply with changed
// fields.
func repliesFrame(alter func(r *wire.Frame)) step {
	return answersWith(func(p *Peer, f *wire.Frame) []byte {
		r, _, _ := wire.ConsumeFrame(p.reply(f))
		alter(&r)
		return wire.AppendFrame(nil, &r)
	})
}
