package wire

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/internal/enum"
)

// ErrShort means that the input is shorter than the item.
var ErrShort = errors.New("wire: more bytes needed")

// ErrKey is found by errors.Is in the *Error for bytes that do not begin with an MPA key: the peer
// speaks another protocol.
var ErrKey = errors.New("wire: not an MPA key")

// Layer is the protocol layer of a Terminate message (RFC 5040 section 4.8).
type Layer uint8

// The layers.
const (
	LayerRDMAP Layer = 0
	LayerDDP   Layer = 1
	LayerMPA   Layer = 2
)

var layerNames = []string{LayerRDMAP: "RDMAP", LayerDDP: "DDP", LayerMPA: "MPA"}

// String is the layer's name.
func (l Layer) String() string { return enum.At(layerNames, l, "layer %d") }

// MarshalText is String's text.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Error describes a malformed item by the layer, type and code of the Terminate message that
// answers it.
type Error struct {
	Layer      Layer
	Type, Code uint8
	Field      string // the field that is wrong
	Value      uint64 // of the field
}

// Error names the field, its value and the meaning of the Terminate.
func (e *Error) Error() string {
	return fmt.Sprintf("wire: %s %#x: %s", e.Field, e.Value, TerminateText(e.Layer, e.Type, e.Code))
}

// Is makes errors.Is find ErrKey.
func (e *Error) Is(target error) bool { return target == ErrKey && e.Field == fieldKey }

// Error types and codes of Terminate messages (RFC 5040 section 4.8, RFC 5041 section 7.2, RFC
// 5044 section 8, RFC 6581 section 8).
const (
	TypeCatastrophic uint8 = 0 // RDMAP, DDP: local catastrophic; MPA: the only type

	RDMAPProtection uint8 = 1 // RDMAP: remote protection
	RDMAPOperation  uint8 = 2 // RDMAP: remote operation
	DDPTagged       uint8 = 1 // DDP: tagged buffer
	DDPUntagged     uint8 = 2 // DDP: untagged buffer
)

type termKey struct {
	layer      Layer
	kind, code uint8
}

var termText = map[termKey]string{
	{LayerRDMAP, 1, 0x00}: "invalid STag",
	{LayerRDMAP, 1, 0x01}: "base or bounds violation",
	{LayerRDMAP, 1, 0x02}: "access rights violation",
	{LayerRDMAP, 1, 0x03}: "STag not associated with this stream",
	{LayerRDMAP, 1, 0x04}: "TO wrap",
	{LayerRDMAP, 1, 0x09}: "STag cannot be invalidated",
	{LayerRDMAP, 1, 0xff}: "unspecified protection error",
	{LayerRDMAP, 2, 0x05}: "invalid RDMAP version",
	{LayerRDMAP, 2, 0x06}: "unexpected opcode",
	{LayerRDMAP, 2, 0x07}: "catastrophic error, this stream",
	{LayerRDMAP, 2, 0x08}: "catastrophic error, global",
	{LayerRDMAP, 2, 0x09}: "STag cannot be invalidated",
	{LayerRDMAP, 2, 0xff}: "unspecified operation error",
	{LayerDDP, 0, 0x00}:   "local catastrophic",
	{LayerDDP, 1, 0x00}:   "invalid STag",
	{LayerDDP, 1, 0x01}:   "base or bounds violation",
	{LayerDDP, 1, 0x02}:   "STag not associated with this stream",
	{LayerDDP, 1, 0x03}:   "TO wrap",
	{LayerDDP, 1, 0x04}:   "invalid DDP version",
	{LayerDDP, 2, 0x01}:   "invalid queue number",
	{LayerDDP, 2, 0x02}:   "no receive posted",
	{LayerDDP, 2, 0x03}:   "MSN out of range",
	{LayerDDP, 2, 0x04}:   "invalid MO",
	{LayerDDP, 2, 0x05}:   "message too long for the receive",
	{LayerDDP, 2, 0x06}:   "invalid DDP version",
	{LayerMPA, 0, 0x01}:   "TCP connection lost",
	{LayerMPA, 0, 0x02}:   "CRC mismatch",
	{LayerMPA, 0, 0x03}:   "FPDU start mismatch",
	{LayerMPA, 0, 0x04}:   "invalid Request or Reply frame",
	{LayerMPA, 0, 0x05}:   "local catastrophic",
	{LayerMPA, 0, 0x06}:   "insufficient IRD",
	{LayerMPA, 0, 0x07}:   "no matching RTR",
}

// isDefined reports whether the standards define the combination.
func isDefined(l Layer, kind, code uint8) bool {
	if l == LayerRDMAP && kind == TypeCatastrophic {
		return true // any code
	}
	_, ok := termText[termKey{l, kind, code}]
	return ok
}

// TerminateText returns a Terminate's layer, type and code in words and as numbers.
func TerminateText(l Layer, kind, code uint8) string {
	s, ok := termText[termKey{l, kind, code}]
	switch {
	case ok:
	case l == LayerRDMAP && kind == TypeCatastrophic:
		s = "local catastrophic"
	default:
		s = "unknown error"
	}
	return fmt.Sprintf("%s %d/%02x %s", l, kind, code, s)
}

// fieldKey is the Error.Field for bytes that are not an MPA key.
const fieldKey = "MPA key byte"
