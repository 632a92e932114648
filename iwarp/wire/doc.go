// Package wire encodes and decodes what iWARP puts on a TCP stream: MPA frames and FPDUs (RFC
// 5044, RFC 6581), DDP segment headers (RFC 5041) and RDMAP headers (RFC 5040). It is pure: no
// state, no I/O, no reflection.
//
// Append functions add one item to a slice and return it. Consume functions decode the item at the
// start of a slice and say how many bytes it took.
//
// # Ownership
//
// Decoded values reference the input where they contain bytes; nothing is copied and nothing is
// allocated, except for errors.
//
// # Ordering
//
// Bytes are on the wire in network order, the MPA CRC excepted: least significant byte first.
//
// # Errors
//
// [ErrShort]: the input is a prefix of something that may be valid; come back with more. An
// [*Error] is final; it has the layer, type and code that RFC 5040's Terminate message knows for
// it.
//
// # Limitations
//
// No markers. A length is only what the field says: whether a message fits its buffer, whether
// numbers follow each other and whether a queue number suits its opcode is for the protocol above.
package wire
