// Package pcapng writes packet captures in the format that Wireshark reads: blocks of a file, and
// TCP segments in IP packets with synthetic headers. It is for captures of bytes that were read
// from sockets and written to them, where the real headers are not available.
//
// A file is one section: AppendSection, AppendInterface, then AppendPacket any number of times, and
// last AppendStatistics.
//
// # Ownership
//
// Everything is appended to a slice of the caller. Nothing is retained.
//
// # Ordering
//
// Packets are in the file in the order in which they were appended, regardless of their times.
//
// # Errors
//
// There are none. A payload that is larger than MaxPayload is the caller's mistake and panics.
//
// # Limitations
//
// One interface, whose packets begin with their IP header (LINKTYPE_RAW). Little-endian. No IP
// options or fragments. Of TCP's options only the two that a SYN needs.
package pcapng
