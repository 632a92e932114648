// Package capture reads packet captures for tests. Load reads those in ../testdata, classic pcap
// files with one TCP connection over IPv4 and Ethernet, and reassembles the connection's two byte
// streams. ReadPcapng reads captures of a device of this project.
//
// # Ownership
//
// A Conn and a File are plain values. A File's packets refer to the bytes that were read.
//
// # Ordering
//
// Streams are in sequence number order; retransmissions and duplicates are overlaid. A File's
// packets are in the order of the file.
//
// # Errors
//
// A file that is not such a capture, or has a hole in a stream, is an error.
//
// # Limitations
//
// Little-endian only. Load: microseconds, and sequence numbers must not wrap.
package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// Conn is a captured TCP connection.
type Conn struct {
	Initiator, Responder []byte // bytes that each side sent
}

const (
	fileHeader, recordHeader, ethHeader = 24, 16, 14

	tcpSYN, tcpACK = 0x02, 0x10
)

type stream struct {
	isn   uint32
	known bool
	data  []byte
	have  []bool
}

func (s *stream) addPayload(seq uint32, p []byte) {
	off := int(seq - s.isn - 1)
	if need := off + len(p); need > len(s.data) {
		s.data = append(s.data, make([]byte, need-len(s.data))...)
		s.have = append(s.have, make([]bool, need-len(s.have))...)
	}
	copy(s.data[off:], p)
	for i := range p {
		s.have[off+i] = true
	}
}

// Load reads the capture at path.
func Load(path string) (Conn, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Conn{}, err
	}
	if len(b) < fileHeader || binary.LittleEndian.Uint32(b) != 0xa1b2c3d4 || binary.LittleEndian.Uint32(b[20:]) != 1 {
		return Conn{}, fmt.Errorf("%s: not a little-endian Ethernet pcap", path)
	}
	var side [2]stream // initiator, responder
	var port uint16    // the initiator's
	for b = b[fileHeader:]; len(b) > 0; {
		if len(b) < recordHeader {
			return Conn{}, errors.New("capture: truncated record")
		}
		n := int(binary.LittleEndian.Uint32(b[8:]))
		if len(b) < recordHeader+n {
			return Conn{}, errors.New("capture: truncated packet")
		}
		if tcp, l := tcpSegment(b[recordHeader : recordHeader+n]); tcp != nil {
			src, seq, flags := binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint32(tcp[4:]), tcp[13]
			if flags&tcpSYN != 0 && flags&tcpACK == 0 && port == 0 {
				port = src
			}
			s := &side[0]
			if src != port {
				s = &side[1]
			}
			if flags&tcpSYN != 0 {
				s.isn, s.known = seq, true
			}
			if s.known && l > 0 {
				s.addPayload(seq, tcp[int(tcp[12]>>4)*4:][:l])
			}
		}
		b = b[recordHeader+n:]
	}
	for i := range side {
		for off, ok := range side[i].have {
			if !ok {
				return Conn{}, fmt.Errorf("%s: side %d has a hole at %d", path, i, off)
			}
		}
	}
	return Conn{Initiator: side[0].data, Responder: side[1].data}, nil
}

// tcpSegment returns the TCP header and the following bytes of an Ethernet frame, with the length
// of the payload; nil for another protocol.
func tcpSegment(p []byte) (tcp []byte, n int) {
	if len(p) < ethHeader+20 || binary.BigEndian.Uint16(p[12:]) != 0x0800 {
		return nil, 0
	}
	ip := p[ethHeader:]
	hl, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if ip[9] != 6 || total > len(ip) || total < hl+20 {
		return nil, 0
	}
	tcp = ip[hl:total]
	return tcp, len(tcp) - int(tcp[12]>>4)*4
}
