// Package pcapng writes packet captures in the format that Wireshark reads: blocks of a file, and
// TCP segments in IP packets whose headers are made up. It is for captures of bytes that were read
// from sockets and written to them, where nobody has seen real headers.
//
// A file is one section: AppendSection, AppendInterface, then AppendPacket any number of times, and
// last AppendStatistics.
//
// # Ownership
//
// Everything is appended to a slice of the caller's. Nothing is kept.
//
// # Ordering
//
// Packets stand in the file in the order in which they were appended, whatever their times.
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
