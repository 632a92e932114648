package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// In TLS mode both sides send frames of the handshake before they send records
// (docs/security-wire.md). A frame does not show whether a record follows it, so until the
// handshake is done all input goes to the identifier, which returns the records.

// framing reports whether incoming messages are frames of a handshake.
func (s *security) framing() bool { return s.tls && s.channel == nil }

// SendFrames posts frames of a handshake, in order. They belong to the connection now.
func (c *Conn) SendFrames(frames [][]byte) {
	if !c.Over() {
		c.sec.frames = append(c.sec.frames, frames...)
		c.pay()
	}
}

// Nudge has a device that may have overlooked the first frame (overlooked.go) look again.
func (c *Conn) Nudge() {
	if c.Device.attr.OverlooksFirst {
		c.l.el.AfterFunc(overlookTime, func() {
			if !c.Over() && c.sec.framing() && !c.sec.heard {
				c.SendFrames([][]byte{secure.NudgeFrame()})
			}
		})
	}
}

// FrameSize is how long frames may be, in bytes.
func (c *Conn) FrameSize() int { return c.sizes.direct }

// Alert replaces the goodbye, and the frames that wait, by an alert.
func (c *Conn) Alert(frame []byte) { c.sec.alert, c.sec.frames = frame, nil }

// Await begins the records of the side that has been connected to: its handshake in TLS mode is
// done. The peer's first message must be its request.
func (c *Conn) Await(ch *secure.Channel) { c.sec.channel, c.sec.awaited = ch, wire.TypeRequest }

// Record takes a record that has come before the handshake was done here.
func (c *Conn) Record(sealed []byte) {
	if !c.Over() {
		c.open(sealed) // nothing but first messages comes yet
	}
}

// payFrames posts the frames that wait. Not ok: some still do.
func (c *Conn) payFrames() (ok bool) {
	s := c.sec
	for len(s.frames) > 0 {
		if !c.Flight.hasRoom() {
			return false // a completion makes room
		}
		if err := c.postFrame(s.frames[0]); err != nil {
			c.unpaid(err)
			return false
		}
		s.frames[0] = nil
		s.frames = s.frames[1:]
	}
	s.frames = nil
	return true
}

// postFrame posts a frame, which the device or its memory has a copy of then.
func (c *Conn) postFrame(b []byte) error {
	var o owed
	if len(b) <= c.Device.attr.MaxInline {
		o.b = b
	} else {
		chunk, err := c.sendChunk(nil, len(b))
		if err != nil {
			return err
		}
		o.posting.chunk, o.b = chunk, append(chunk.Bytes()[:0], b...)
	}
	err := c.Device.postRecord(c, &o, false)
	if err != nil && o.posting.chunk != nil {
		o.posting.chunk.Free()
	}
	return err
}
