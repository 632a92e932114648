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
// Numbers are in network byte order on the wire. Only the MPA CRC has its least significant byte
// first.
//
// # Errors
//
// [ErrShort] means that the input is a prefix of something that may be valid: call again with more
// bytes. An [*Error] is final. It has the layer, type and code for RFC 5040's Terminate message.
//
// # Limitations
//
// There are no markers. A length is returned as the field has it. The protocol above checks
// whether a message fits its buffer, whether sequence numbers are consecutive, and whether a queue
// number matches its opcode.
package wire
