package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// File is a pcapng file with one interface of raw IP packets.
type File struct {
	Program, Remark string // of the section
	Name, About     string // of the interface
	Packets         []Packet
	// Statistics are the interface's at the end, keyed by option code; nil: none.
	Statistics map[uint16]uint64
}

// Packet is a TCP segment with its metadata in the file.
type Packet struct {
	Time     time.Time
	Inbound  bool
	Comment  string
	From, To netip.AddrPort
	Seq, Ack uint32
	Flags    uint8
	Payload  []byte
}

// pcapng's numbers as in its specification, draft-ietf-opsawg-pcapng.
const (
	sectionBlock, interfaceBlock, statisticsBlock, packetBlock = 0x0a0d0d0a, 1, 5, 6
	ipv4Only                                                   = 0x45
)

// options are the options of a block, keyed by code.
type options map[uint16]string

// ReadPcapng reads a whole file, and returns an error for everything in it that is not correct:
// lengths, padding, checksums.
func ReadPcapng(b []byte) (f File, err error) {
	for at := 0; at < len(b); {
		rest := b[at:]
		if len(rest) < 12 {
			return f, fmt.Errorf("at %d: %d bytes of a block", at, len(rest))
		}
		kind, n := binary.LittleEndian.Uint32(rest), int(binary.LittleEndian.Uint32(rest[4:]))
		if n%4 != 0 || n < 12 || n > len(rest) || binary.LittleEndian.Uint32(rest[n-4:]) != uint32(n) {
			return f, fmt.Errorf("at %d: a block of %d bytes, %d are there", at, n, len(rest))
		}
		if (at == 0) != (kind == sectionBlock) {
			return f, fmt.Errorf("at %d: block %#x", at, kind)
		}
		if err := f.readBlock(kind, rest[8:n-4]); err != nil {
			return f, fmt.Errorf("at %d, block %#x: %w", at, kind, err)
		}
		at += n
	}
	return f, nil
}

func (f *File) readBlock(kind uint32, b []byte) error {
	fixed := map[uint32]int{sectionBlock: 16, interfaceBlock: 8, statisticsBlock: 12, packetBlock: 20}[kind]
	switch {
	case fixed == 0:
		return errors.New("unknown")
	case len(b) < fixed:
		return errors.New("too short")
	case f.Statistics != nil:
		return errors.New("behind the statistics")
	case kind == packetBlock:
		return f.readPacket(b)
	}
	o, err := readOptions(b[fixed:])
	if err != nil {
		return err
	}
	switch kind {
	case sectionBlock:
		if binary.LittleEndian.Uint32(b) != 0x1a2b3c4d || binary.LittleEndian.Uint32(b[4:]) != 1 {
			return fmt.Errorf("byte order and version %x", b[:8])
		}
		f.Remark, f.Program = o[1], o[4]
	case interfaceBlock:
		if binary.LittleEndian.Uint16(b) != 101 || o[9] != "\x09" {
			return fmt.Errorf("link type %x, resolution %x", b[:2], o[9])
		}
		f.Name, f.About = o[2], o[3]
	case statisticsBlock:
		f.Statistics = make(map[uint16]uint64)
		for code, v := range o {
			if len(v) != 8 {
				return fmt.Errorf("option %d of %d bytes", code, len(v))
			}
			f.Statistics[code] = binary.LittleEndian.Uint64([]byte(v))
		}
	}
	return nil
}

func readOptions(b []byte) (options, error) {
	o := make(options)
	for len(b) > 0 {
		if len(b) < 4 {
			return nil, errors.New("an option of less than four bytes")
		}
		code, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		end := 4 + (n+3)/4*4
		switch {
		case code == 0 && n == 0 && len(b) == 4:
			return o, nil
		case code == 0:
			return nil, errors.New("bytes behind the last option")
		case end > len(b):
			return nil, fmt.Errorf("option %d of %d bytes, %d are there", code, n, len(b))
		}
		o[code] = string(b[4 : 4+n])
		for _, p := range b[4+n : end] {
			if p != 0 {
				return nil, fmt.Errorf("option %d is padded with %x", code, b[4+n:end])
			}
		}
		b = b[end:]
	}
	return o, nil
}

func (f *File) readPacket(b []byte) error {
	n := int(binary.LittleEndian.Uint32(b[12:]))
	end := 20 + (n+3)/4*4
	if f.Name == "" || binary.LittleEndian.Uint32(b) != 0 || binary.LittleEndian.Uint32(b[16:]) != uint32(n) || end > len(b) {
		return fmt.Errorf("a packet of %d bytes, originally %d, %d are there", n, binary.LittleEndian.Uint32(b[16:]), len(b)-20)
	}
	o, err := readOptions(b[end:])
	if err != nil {
		return err
	}
	if d := o[2]; d != "\x01\x00\x00\x00" && d != "\x02\x00\x00\x00" {
		return fmt.Errorf("flags %x", d)
	}
	at := int64(binary.LittleEndian.Uint32(b[4:]))<<32 | int64(binary.LittleEndian.Uint32(b[8:]))
	p := Packet{Time: time.Unix(0, at), Inbound: o[2][0] == 1, Comment: o[1]}
	if err := p.readIP(b[20 : 20+n]); err != nil {
		return err
	}
	f.Packets = append(f.Packets, p)
	return nil
}

// readIP reads an IP packet.
func (p *Packet) readIP(b []byte) error {
	var from, to netip.Addr
	var pseudo, tcp []byte
	switch {
	case len(b) >= 40 && b[0] == ipv4Only:
		if int(binary.BigEndian.Uint16(b[2:])) != len(b) || b[9] != 6 || onesComplementSum(b[:20]) != 0xffff {
			return fmt.Errorf("an IPv4 header %x of %d bytes", b[:20], len(b))
		}
		from, to = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
		pseudo, tcp = append(pseudo, b[12:20]...), b[20:]
	case len(b) >= 60 && b[0]>>4 == 6:
		if int(binary.BigEndian.Uint16(b[4:])) != len(b)-40 || b[6] != 6 {
			return fmt.Errorf("an IPv6 header %x of %d bytes", b[:40], len(b))
		}
		from, to = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		pseudo, tcp = append(pseudo, b[8:40]...), b[40:]
	default:
		return fmt.Errorf("no IP packet: %.40x", b)
	}
	pseudo = append(pseudo, 0, 6, byte(len(tcp)>>8), byte(len(tcp)))
	if s := onesComplementSum(append(pseudo, tcp...)); s != 0xffff {
		return fmt.Errorf("a TCP segment with the sum %#x: %.60x", s, tcp)
	}
	header := int(tcp[12]>>4) * 4
	if header < 20 || header > len(tcp) {
		return fmt.Errorf("a TCP header of %d bytes", header)
	}
	p.From, p.To = netip.AddrPortFrom(from, binary.BigEndian.Uint16(tcp)), netip.AddrPortFrom(to, binary.BigEndian.Uint16(tcp[2:]))
	p.Seq, p.Ack, p.Flags, p.Payload = binary.BigEndian.Uint32(tcp[4:]), binary.BigEndian.Uint32(tcp[8:]), tcp[13], tcp[header:]
	return nil
}

// onesComplementSum returns the one's complement sum of b, two bytes at a time: 0xffff if b
// contains a correct checksum.
func onesComplementSum(b []byte) uint32 {
	var s uint32
	for i, v := range b {
		if i%2 == 0 {
			s += uint32(v) << 8
		} else {
			s += uint32(v)
		}
		s = s&0xffff + s>>16
	}
	return s
}
