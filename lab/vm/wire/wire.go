// Package wire is the protocol between the rig and its agent in the guest. Both send frames over
// one byte stream. Each frame has the number of the command to which it belongs.
//
// Several goroutines may write if they serialize their calls of Write. Errors are those of the
// stream. A frame that is too long is an error too, because it means that the two ends are out of
// step.
package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Kind is the kind of a frame.
type Kind byte

// The kinds of frames.
const (
	Ready  Kind = iota + 1 // agent: the machine is set up; Command is 0
	Start                  // rig: run the payload, a script for /bin/sh
	Stdin                  // rig: the payload is input of the command; an empty payload ends it
	Kill                   // rig: kill the command and its process group
	Output                 // agent: the payload is output of the command
	// agent: the command has ended; the payload is its exit code in decimal, 128 + N for signal N
	Exit
)

// MaxPayload is the length of the longest payload in bytes.
const MaxPayload = 64 << 10

// Frame is one message. The rig chooses Command, and never uses a number twice in one boot.
type Frame struct {
	Kind    Kind
	Command uint32
	Payload []byte
}

const headerLen = 9

// Write writes one frame with a single call of w.Write.
func Write(w io.Writer, f Frame) error {
	if len(f.Payload) > MaxPayload {
		return fmt.Errorf("a payload of %d bytes is longer than %d", len(f.Payload), MaxPayload)
	}
	b := make([]byte, headerLen, headerLen+len(f.Payload))
	binary.BigEndian.PutUint32(b, uint32(len(f.Payload)))
	b[4] = byte(f.Kind)
	binary.BigEndian.PutUint32(b[5:], f.Command)
	_, err := w.Write(append(b, f.Payload...))
	return err
}

// Read reads one frame. Its payload belongs to the caller.
func Read(r io.Reader) (Frame, error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(h[:])
	f := Frame{Kind: Kind(h[4]), Command: binary.BigEndian.Uint32(h[5:])}
	if n > MaxPayload || f.Kind < Ready || f.Kind > Exit {
		return Frame{}, fmt.Errorf("out of step: a frame of kind %d with %d bytes", f.Kind, n)
	}
	f.Payload = make([]byte, n)
	_, err := io.ReadFull(r, f.Payload)
	return f, err
}
