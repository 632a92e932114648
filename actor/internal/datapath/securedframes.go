package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// In TLS mode both sides send frames of the handshake before they send records
// (docs/security-wire.md). A frame does not show whether a record follows it, so until the
// handshake is done all input goes to the identifier, which returns the records.

// awaitsFrames reports whether incoming messages are frames of a handshake.
func (s *security) awaitsFrames() bool { return s.tls && s.channel == nil }

// SendFrames posts frames of a handshake, in order. They belong to the connection now.
func (s *security) SendFrames(frames [][]byte) {
	if !s.c.Over() {
		s.frames = append(s.frames, frames...)
		s.payOwed()
	}
}

// Nudge has a device that may have overlooked the first frame (overlooked.go) look again.
func (s *security) Nudge() {
	if s.c.Device.attr.OverlooksFirst {
		s.c.l.el.AfterFunc(overlookTime, func() {
			if !s.c.Over() && s.awaitsFrames() && !s.heard {
				s.SendFrames([][]byte{secure.NudgeFrame()})
			}
		})
	}
}

// FrameSize is how long frames may be, in bytes.
func (c *Conn) FrameSize() int { return c.Out.sizes.direct }

// Alert replaces the goodbye, and the frames that wait, by an alert.
func (s *security) Alert(frame []byte) { s.alert, s.frames = frame, nil }

// Await begins the records of the side that has been connected to: its handshake in TLS mode is
// done. The peer's first message must be its request.
func (s *security) Await(ch *secure.Channel) { s.channel, s.awaited = ch, wire.TypeRequest }

// Record takes a record that has come before the handshake was done here.
func (s *security) Record(sealed []byte) {
	if !s.c.Over() {
		s.openRecord(sealed) // nothing but first messages comes yet
	}
}

// payFrames posts the frames that wait. Not ok: some still do.
func (s *security) payFrames() (ok bool) {
	for len(s.frames) > 0 {
		if !s.c.Out.Flight.hasRoom() {
			return false // a completion makes room
		}
		if err := s.postFrame(s.frames[0]); err != nil {
			s.retryOwed(err)
			return false
		}
		s.frames[0] = nil
		s.frames = s.frames[1:]
	}
	s.frames = nil
	return true
}

// postFrame posts a frame, which the device or its memory has a copy of then.
func (s *security) postFrame(b []byte) error {
	var o owed
	if len(b) <= s.c.Device.attr.MaxInline {
		o.b = b
	} else {
		chunk, err := s.c.Out.sendChunk(nil, len(b))
		if err != nil {
			return err
		}
		o.posting.chunk, o.b = chunk, append(chunk.Bytes()[:0], b...)
	}
	err := s.c.Device.postRecord(s.c, &o, false)
	if err != nil && o.posting.chunk != nil {
		o.posting.chunk.Free()
	}
	return err
}
