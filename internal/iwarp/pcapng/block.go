package pcapng

import (
	"encoding/binary"
	"time"
)

// Types of blocks and codes of options (draft-ietf-opsawg-pcapng).
const (
	sectionHeader        = 0x0a0d0d0a
	interfaceDescription = 1
	interfaceStatistics  = 5
	enhancedPacket       = 6

	byteOrder = 0x1a2b3c4d // shows readers the byte order
	rawIP     = 101        // LINKTYPE_RAW

	endOfOptions    = 0
	comment         = 1
	application     = 4 // of a section
	name            = 2 // of an interface
	description     = 3
	resolution      = 9
	packetFlags     = 2 // of a packet
	startTime       = 2 // of statistics
	endTime         = 3
	received        = 4
	dropped         = 5
	delivered       = 8
	nanoseconds     = 9 // of resolution: 10^-9 s
	inbound         = 1 // of packetFlags
	outbound        = 2
	blockOverhead   = 12 // type, length, length again
	packetFixed     = 20 // interface, time, lengths
	statisticsFixed = 12 // interface, time
)

// StatisticsLen is the number of bytes that AppendStatistics appends.
const StatisticsLen = blockOverhead + statisticsFixed + 5*(4+8) + 4

// beginBlock begins a block.
func beginBlock(b []byte, kind uint32) (_ []byte, at int) {
	at = len(b)
	b = binary.LittleEndian.AppendUint32(b, kind)
	return append(b, 0, 0, 0, 0), at // its length, which is not known yet
}

// endBlock ends the block that begins at at.
func endBlock(b []byte, at int) []byte {
	n := uint32(len(b) - at + 4)
	binary.LittleEndian.PutUint32(b[at+4:], n)
	return binary.LittleEndian.AppendUint32(b, n)
}

// pad appends zeros, so that len(b)-at is a multiple of four.
func pad(b []byte, at int) []byte {
	for (len(b)-at)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func appendOption(b []byte, code uint16, value string) []byte {
	value = value[:min(len(value), 1<<16-1)]
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	at := len(b)
	return pad(append(b, value...), at)
}

func numberOption(b []byte, code uint16, value uint64) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, 8)
	return binary.LittleEndian.AppendUint64(b, value)
}

// timeOption appends a time in a packet's format: the upper half first.
func timeOption(b []byte, code uint16, t time.Time) []byte {
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, 8)
	return appendTime(b, t)
}

func appendTime(b []byte, t time.Time) []byte {
	n := uint64(t.UnixNano())
	b = binary.LittleEndian.AppendUint32(b, uint32(n>>32))
	return binary.LittleEndian.AppendUint32(b, uint32(n))
}

func endOptions(b []byte) []byte { return append(b, endOfOptions, 0, 0, 0) }

// AppendSection appends the header of a file: the writing program, and a remark for readers.
func AppendSection(b []byte, program, remark string) []byte {
	b, at := beginBlock(b, sectionHeader)
	b = binary.LittleEndian.AppendUint32(b, byteOrder)
	b = append(b, 1, 0, 0, 0)                        // version 1.0
	b = binary.LittleEndian.AppendUint64(b, 1<<64-1) // of unknown length
	b = appendOption(appendOption(b, comment, remark), application, program)
	return endBlock(endOptions(b), at)
}

// AppendInterface appends the description of the one interface. Times are in nanoseconds.
func AppendInterface(b []byte, called, about string) []byte {
	b, at := beginBlock(b, interfaceDescription)
	b = binary.LittleEndian.AppendUint16(b, rawIP)
	b = append(b, 0, 0, 0, 0, 0, 0) // reserved; packets of any length
	b = appendOption(appendOption(b, name, called), description, about)
	b = appendOption(b, resolution, string([]byte{nanoseconds}))
	return endBlock(endOptions(b), at)
}

// Statistics are the statistics of a capture, from its beginning to its end.
type Statistics struct {
	Start, End       time.Time
	Written, Dropped uint64 // packets
}

// AppendStatistics appends s.
func AppendStatistics(b []byte, s Statistics) []byte {
	b, at := beginBlock(b, interfaceStatistics)
	b = append(b, 0, 0, 0, 0) // the interface
	b = appendTime(b, s.End)
	b = timeOption(timeOption(b, startTime, s.Start), endTime, s.End)
	b = numberOption(b, received, s.Written+s.Dropped)
	b = numberOption(b, dropped, s.Dropped)
	b = numberOption(b, delivered, s.Written)
	return endBlock(endOptions(b), at)
}

// Packet is a TCP segment of a connection, with its metadata.
type Packet struct {
	Time    time.Time
	Inbound bool // sent by the peer
	Comment string
	Segment
}

// AppendPacket appends p with its payload, which may be in pieces. It is at most MaxPayload bytes.
func AppendPacket(b []byte, p *Packet, payload ...[]byte) []byte {
	n := p.headerLen()
	for _, piece := range payload {
		n += len(piece)
	}
	b, at := beginBlock(b, enhancedPacket)
	b = append(b, 0, 0, 0, 0) // the interface
	b = appendTime(b, p.Time)
	b = binary.LittleEndian.AppendUint32(b, uint32(n)) // captured length
	b = binary.LittleEndian.AppendUint32(b, uint32(n)) // original length
	b = pad(p.appendPacket(b, payload), at)
	if p.Comment != "" {
		b = appendOption(b, comment, p.Comment)
	}
	direction := byte(outbound)
	if p.Inbound {
		direction = inbound
	}
	b = appendOption(b, packetFlags, string([]byte{direction, 0, 0, 0}))
	return endBlock(endOptions(b), at)
}

// PacketLen returns an upper limit for the length that AppendPacket appends for n bytes of payload.
func PacketLen(n int, comment string) int {
	return blockOverhead + packetFixed + maxHeader + n + 3 + 4 + len(comment) + 3 + 8 + 4
}
