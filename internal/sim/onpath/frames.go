package onpath

import (
	"bytes"
	"slices"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/sim/network"
)

// flow is one direction of a connection.
type flow struct {
	*history
	set  bool   // its set-up frame has passed
	part []byte // an incomplete frame
	late []byte // a complete frame, which the next one overtakes
}

// Pass implements network.Path.
func (a *Attacker) Pass(to network.Flow, b []byte) []byte {
	if a.flows == nil {
		a.flows = make(map[network.Flow]*flow)
	}
	f := a.flows[to]
	if f == nil {
		f = &flow{}
		a.flows[to] = f
	}
	f.part = append(f.part, b...)
	var out []byte
	for {
		n := f.frameLength()
		if n == 0 {
			return out
		}
		frame := slices.Clone(f.part[:n])
		f.part = f.part[n:]
		if f.history == nil {
			f.history = a.newHistory(to, bytes.HasPrefix(frame, []byte("MPA ID Req")))
		}
		out = append(out, a.replaceFrame(to, f, frame)...)
		f.set = true
	}
}

// End implements network.Path.
func (a *Attacker) End(to network.Flow) []byte {
	f := a.flows[to]
	if f == nil {
		return nil
	}
	delete(a.flows, to)
	return append(f.late, f.part...)
}

// header is the length of a set-up frame without its private data.
const header = 20

// frameLength returns the length of the first frame; 0: it is incomplete.
func (f *flow) frameLength() int {
	n := header
	switch {
	case f.set && len(f.part) < wire.LengthLen, !f.set && len(f.part) < header:
		return 0
	case f.set:
		n = wire.FPDULen(int(f.part[0])<<8 | int(f.part[1]))
	default:
		n += int(f.part[header-2])<<8 | int(f.part[header-1]) // of the private data
	}
	if len(f.part) < n {
		return 0
	}
	return n
}

// replaceFrame returns the bytes that arrive instead of a frame.
func (a *Attacker) replaceFrame(to network.Flow, f *flow, b []byte) []byte {
	if !f.set {
		return a.setUp(to, b)
	}
	if late := f.late; late != nil {
		f.late = nil
		f.recordMessage(b)
		return append(b, late...)
	}
	before, from := a.last, a.from
	var earlier, others [][]byte
	if len(a.armed) > 0 {
		earlier, others = a.replacingMessages(f, b)
	}
	act := a.dueAct(to, func(act Act) bool {
		switch act {
		case Strip, Relay:
			return false
		case Splice:
			return before != nil && from != to
		case Replay:
			return len(earlier) > 0
		case Graft:
			return len(others) > 0
		}
		return true
	})
	if !bytes.Equal(b, before) {
		a.last, a.from = slices.Clone(b), to
	}
	f.recordMessage(b)
	switch act {
	case Flip:
		return a.flipInFrame(b)
	case Drop:
		return nil
	case Repeat:
		return append(b, b...)
	case Swap:
		f.late = b
		return nil
	case Cut:
		return a.cutPayload(b)
	case Splice:
		return before
	case Replay:
		return putMessage(b, earlier[a.Rand.IntN(len(earlier))])
	case Graft:
		return putMessage(b, others[a.Rand.IntN(len(others))])
	}
	return b
}

// setUp returns the bytes that arrive instead of a set-up frame. The device's part of it is
// unchanged.
func (a *Attacker) setUp(to network.Flow, b []byte) []byte {
	act := a.dueAct(to, inSetUp)
	private := b[header:]
	if hello := []byte{0x7e, 0xda}; !bytes.HasPrefix(private, hello) && len(private) >= 4 {
		private = private[4:] // how many Reads each side answers at a time
	}
	switch act {
	case Strip:
		a.stripSecurity(private)
	case Flip:
		a.flipBit(private)
	}
	return b
}

// flipInFrame changes a bit of the last bytes of a frame, and its CRC.
func (a *Attacker) flipInFrame(b []byte) []byte {
	f, _, err := wire.ConsumeFPDU(b)
	if err != nil || len(f.ULPDU) == 0 {
		return b
	}
	a.flipBit(f.ULPDU)
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}

// cutPayload removes the end of a frame's payload, and corrects its length and its CRC. If bytes of
// the frame itself were missing, the receiver would take those after it for headers. They are
// sealed, with keys that do not depend on the seed, so no two runs would be the same.
func (a *Attacker) cutPayload(b []byte) []byte {
	f, _, err := wire.ConsumeFPDU(b)
	if err != nil || len(f.ULPDU) == 0 {
		return b
	}
	header := wire.UntaggedLen
	if f.ULPDU[0]&0x80 != 0 {
		header = wire.TaggedLen
	}
	if len(f.ULPDU) <= header {
		return b
	}
	f.ULPDU = f.ULPDU[:header+a.Rand.IntN(len(f.ULPDU)-header)]
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}

// replacingMessages returns the messages that may replace the one in a frame: earlier ones, and
// those of other connections. A message of several frames has none.
func (a *Attacker) replacingMessages(f *flow, b []byte) (earlier, others [][]byte) {
	m, last := sendInFrame(b)
	if m == nil || !last {
		return nil, nil
	}
	return f.earlierMessages(m), a.otherMessages(f.history, m)
}

// recordMessage records the message that a frame contains or ends.
func (f *flow) recordMessage(b []byte) {
	switch m, last := sendInFrame(b); {
	case m != nil && last:
		f.addMessage(m)
	case last:
		f.addMessage(nil)
	}
}

// sendInFrame returns a Send that starts in a frame; nil: none. last reports that a Send ends in
// it.
func sendInFrame(b []byte) (m []byte, last bool) {
	f, _, err := wire.ConsumeFPDU(b)
	if err != nil || len(f.ULPDU) < wire.UntaggedLen || f.ULPDU[0]&0x80 != 0 || f.ULPDU[1]&0xf != 3 {
		return nil, false
	}
	last = f.ULPDU[0]&0x40 != 0
	offset := f.ULPDU[wire.UntaggedLen-4 : wire.UntaggedLen]
	if !bytes.Equal(offset, []byte{0, 0, 0, 0}) {
		return nil, last
	}
	return f.ULPDU[wire.UntaggedLen:], last
}

// putMessage puts a message into a frame that has one.
func putMessage(b, m []byte) []byte {
	f, _, _ := wire.ConsumeFPDU(b) // sendInFrame has checked it
	f.ULPDU = slices.Concat(f.ULPDU[:wire.UntaggedLen], m)
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}
