package wire

import (
	"errors"
	"fmt"
)

// ErrShort means that the input ends before the item does.
var ErrShort = errors.New("wire: more bytes needed")

// ErrKey is found (errors.Is) in the *Error of bytes that do not begin with a key of MPA's: the peer speaks another protocol.
var ErrKey = errors.New("wire: not an MPA key")

// Layer is the protocol layer of a Terminate message (RFC 5040 section 4.8).
type Layer uint8

// The layers.
const (
	LayerRDMAP Layer = 0
	LayerDDP   Layer = 1
	LayerMPA   Layer = 2
)

// String is the layer's name.
func (l Layer) String() string {
	switch l {
	case LayerRDMAP:
		return "RDMAP"
	case LayerDDP:
		return "DDP"
	case LayerMPA:
		return "MPA"
	}
	return fmt.Sprintf("layer %d", uint8(l))
}

// Error is a malformed item, in the terms of the Terminate message that answers it.
type Error struct {
	Layer      Layer
	Type, Code uint8
	Field      string // the field that is wrong
	Value      uint64 // what it held
}

// Error says which field held what, and the Terminate's meaning.
func (e *Error) Error() string {
	return fmt.Sprintf("wire: %s %#x: %s", e.Field, e.Value, TerminateText(e.Layer, e.Type, e.Code))
}

// Is finds ErrKey.
func (e *Error) Is(target error) bool { return target == ErrKey && e.Field == fieldKey }
