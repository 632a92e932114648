package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

// step is one action of a hostile peer.
type step = func(*Peer)

var fin, reset, settle, stay step = (*Peer).sendFIN, (*Peer).closeWithReset, (*Peer).awaitSetUp, (*Peer).awaitClose

// readFrame reads the other side's frame, and ignores its content.
func readFrame(p *Peer) { p.readMPAFrame() }

// newExchange makes an exchange with steps after a correct set-up.
func newExchange(name, rule string, w Want, steps ...step) Exchange {
	return Exchange{Name: name, Rule: rule, Want: w, run: func(p *Peer) {
		for _, s := range steps {
			s(p)
		}
	}}
}

// dialExchange makes an exchange of an initiator whose steps include the set-up.
func dialExchange(name, rule string, w Want, steps ...step) Exchange {
	x := newExchange(name, rule, w, steps...)
	x.Side, x.raw = Dials, true
	return x
}

// answerExchange makes an exchange of a responder whose steps include the set-up.
func answerExchange(name, rule string, w Want, steps ...step) Exchange {
	x := newExchange(name, rule, w, steps...)
	x.Side, x.raw = Answers, true
	return x
}

// offendExchange makes an exchange that sends the correct FPDUs right and then the wrong one.
func offendExchange(name, rule string, w Want, wrong []byte, right ...[]byte) Exchange {
	return newExchange(name, rule, w, goodStep(right...), badStep(wrong))
}

// goodStep returns Peer.sendGood as a step.
func goodStep(ulpdus ...[]byte) step { return func(p *Peer) { p.sendGood(ulpdus...) } }

// badStep returns Peer.sendBad as a step.
func badStep(ulpdu []byte) step { return func(p *Peer) { p.sendBad(ulpdu) } }

// offendingStep records which ULPDU of the next step is the wrong one.
func offendingStep(ulpdu []byte) step { return func(p *Peer) { p.seen.Offending = ulpdu } }

// writeStep makes a step that sends bytes that are not an FPDU.
func writeStep(b []byte) step { return func(p *Peer) { p.write(b) } }

// fragmentStep makes a step that sends the first n bytes of an FPDU.
func fragmentStep(ulpdu []byte, n int) step {
	return func(p *Peer) { p.write(p.frameULPDU(ulpdu)[:n]) }
}

// message makes the bytes of a frame.
type message = func(p *Peer) []byte

// plainRequest makes a correct Request.
func plainRequest(p *Peer) []byte { return p.newRequest(wire.FlagEnhanced, 2, control, nil) }

// requestMessage makes a Request with that many bytes of private data.
func requestMessage(flags wire.Flags, rev uint8, c wire.Control, private int) message {
	return func(p *Peer) []byte { return p.newRequest(flags, rev, c, zeros(private)) }
}

// p2pControl returns a control word that asks for the peer-to-peer mode with that RTR.
func p2pControl(write, read bool) wire.Control {
	return wire.Control{PeerToPeer: true, RTRWrite: write, RTRRead: read, IRD: Depth, ORD: Depth}
}

// change changes a frame's bytes.
type change = func(b []byte) []byte

// setByte overwrites byte i.
func setByte(i int, v byte) change {
	return func(b []byte) []byte {
		b[i] = v
		return b
	}
}

// cutTo keeps only the first n bytes.
func cutTo(n int) change { return func(b []byte) []byte { return b[:n] } }

// followedBy appends bytes.
func followedBy(more []byte) change { return func(b []byte) []byte { return append(b, more...) } }

// repeatFrame appends the frame once more.
func repeatFrame(b []byte) []byte { return append(b, b...) }

func applyChanges(b []byte, changes []change) []byte {
	for _, c := range changes {
		b = c(b)
	}
	return b
}

// frameStep makes a step that sends an MPA frame with changes.
func frameStep(m message, changes ...change) step {
	return func(p *Peer) { p.write(applyChanges(m(p), changes)) }
}

// beginStep makes a step that sends a Request. It takes steps if the Request is accepted.
func beginStep(c wire.Control, steps ...step) step {
	return func(p *Peer) {
		if !p.exchangeRequest(wire.FlagEnhanced, 2, c) {
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
		if f := p.readMPAFrame(); f != nil {
			p.crc = p.o.CRC || f.Flags&wire.FlagCRC != 0
			p.write(reply(p, f))
		}
	}
}

// replyStep makes a step that reads the Request, and sends the correct Reply with some of its bytes
// changed.
func replyStep(changes ...change) step {
	return answersWith(func(p *Peer, f *wire.Frame) []byte { return applyChanges(p.newReply(f), changes) })
}

// repliesFrame makes a step that reads the Request, and sends the correct Reply with changed
// fields.
func repliesFrame(alter func(r *wire.Frame)) step {
	return answersWith(func(p *Peer, f *wire.Frame) []byte {
		r, _, _ := wire.ConsumeFrame(p.newReply(f))
		alter(&r)
		return wire.AppendFrame(nil, &r)
	})
}
