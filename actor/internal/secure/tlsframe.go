package secure

import (
	"crypto/tls"
	"fmt"
)

// Handshake bytes travel in frames: a type, a level, and bytes. Those of the first level are in the
// clear, the others are a record. An alert is a type and the alert's number.
const (
	frameHandshake = 11
	frameAlert     = 12

	frameHeader = 2
	alertLen    = 2

	// The levels are those of crypto/tls.
	levelInitial   = byte(tls.QUICEncryptionLevelInitial)
	levelHandshake = byte(tls.QUICEncryptionLevelHandshake)
)

const (
	// MaxTLSBytes is how many bytes of a handshake each side sends at most.
	MaxTLSBytes = 64 << 10
	// MaxTLSFrames is how many frames each side sends at most, and MaxTLSFlight how many of them
	// without having heard of the other in between: so many receives wait for them.
	MaxTLSFrames = 36
	MaxTLSFlight = 12
	// TLSFrameOverhead is how many bytes a frame has at most besides bytes of the handshake.
	TLSFrameOverhead = frameHeader + Overhead
	// MinTLSFrame is the least, in bytes, that the receives of both sides hold.
	MinTLSFrame = 1 << 10
)

// parseFrame takes a frame of a handshake apart. body is part of b.
func parseFrame(b []byte) (level byte, body []byte, err error) {
	if err := PeerAlert(b); err != nil {
		return 0, nil, err
	}
	switch {
	case len(b) < frameHeader || len(b) == frameHeader && b[1] != levelInitial:
		return 0, nil, newHandshakeError("a frame of %d bytes", len(b))
	case b[0] != frameHandshake:
		return 0, nil, newHandshakeError("a frame of type %d", b[0])
	case b[1] != levelInitial && b[1] != levelHandshake:
		return 0, nil, newHandshakeError("a frame of level %d", b[1])
	}
	return b[1], b[frameHeader:], nil
}

// PeerAlert returns the reason with which the peer refuses the handshake, if b is such an alert,
// else nil. It comes in place of a frame or of the first record, and any attacker on the path can
// have sent it.
func PeerAlert(b []byte) error {
	if len(b) != alertLen || b[0] != frameAlert {
		return nil
	}
	return &HandshakeError{"the peer refuses ours", tls.AlertError(b[1])}
}

// InternalAlert is the alert of a side that cannot do its part of a handshake.
func InternalAlert() []byte { return []byte{frameAlert, 80} }

// NudgeFrame is a frame with nothing in it. A client sends it whose first frame may have been
// overlooked by the server's device.
func NudgeFrame() []byte { return []byte{frameHandshake, levelInitial} }

// appendFrames cuts data into frames of at most size bytes and appends them to the list.
func appendFrames(list [][]byte, level byte, data []byte, size int, seal *Sealer) ([][]byte, error) {
	room := size - frameHeader
	if seal != nil {
		room -= Overhead
	}
	for len(data) > 0 {
		n := min(room, len(data))
		b := append(make([]byte, 0, frameHeader+n+Overhead), frameHandshake, level)
		if seal == nil {
			b = append(b, data[:n]...)
		} else {
			var err error
			if b, err = seal.Seal(b, data[:n]); err != nil {
				return nil, err
			}
		}
		list = append(list, b)
		data = data[n:]
	}
	if len(list) > MaxTLSFlight {
		return nil, &ConfigError{What: fmt.Sprintf("a handshake of more than %d messages of %d bytes at once: fewer certificates", MaxTLSFlight, size)}
	}
	return list, nil
}
