package pcapng_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/capture"
	"github.com/rdmactor/rdmactor/internal/iwarp/pcapng"
)

var (
	begun = time.Unix(1_700_000_000, 123_456_789)
	ended = begun.Add(time.Minute)
	four  = pcapng.Segment{From: netip.MustParseAddrPort("192.0.2.1:40000"), To: netip.MustParseAddrPort("198.51.100.7:7174")}
	six   = pcapng.Segment{From: netip.MustParseAddrPort("[2001:db8::1]:40000"), To: netip.MustParseAddrPort("[2001:db8::7]:7174")}
)

// file returns the beginning of every capture.
func file() []byte {
	b := pcapng.AppendSection(nil, "program", "a remark")
	return pcapng.AppendInterface(b, "iwarp0", "about it")
}

func packet(s pcapng.Segment, flags pcapng.Flags, comment string) *pcapng.Packet {
	s.Seq, s.Ack, s.Flags = 0x01020304, 0x05060708, flags
	return &pcapng.Packet{Time: begun, Inbound: comment != "", Comment: comment, Segment: s}
}

// TestGolden compares a small file with its expected bytes, which tshark has read without a
// complaint.
func TestGolden(t *testing.T) {
	b := pcapng.AppendPacket(file(), packet(four, pcapng.SYN, ""))
	b = pcapng.AppendPacket(b, packet(six, pcapng.PSH|pcapng.ACK, "who"), []byte("pay"), nil, []byte("load"))
	b = pcapng.AppendStatistics(b, pcapng.Statistics{Start: begun, End: ended, Written: 2, Dropped: 3})
	var want string
	for line := range strings.Lines(strings.TrimSpace(golden)) {
		want += strings.Fields(line)[0]
	}
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	f, err := capture.ReadPcapng(b)
	if err != nil {
		t.Fatal(err)
	}
	if f.Program != "program" || f.Remark != "a remark" || f.Name != "iwarp0" || f.About != "about it" || len(f.Packets) != 2 {
		t.Errorf("read back: %+v", f)
	}
	for code, want := range map[uint16]uint64{4: 5, 5: 3, 8: 2} { // received, dropped, delivered
		if f.Statistics[code] != want {
			t.Errorf("statistics %v: option %d should be %d", f.Statistics, code, want)
		}
	}
}

// check appends a packet and reads it back.
func check(t *testing.T, p *pcapng.Packet, payload ...[]byte) {
	t.Helper()
	whole := bytes.Join(payload, nil)
	b := file()
	before := len(b)
	b = pcapng.AppendPacket(b, p, payload...)
	if n := len(b) - before; n > pcapng.PacketLen(len(whole), p.Comment) {
		t.Errorf("a packet of %d bytes takes %d, PacketLen says %d", len(whole), n, pcapng.PacketLen(len(whole), p.Comment))
	}
	s := pcapng.Statistics{Start: begun, End: ended}
	if n := len(pcapng.AppendStatistics(nil, s)); n != pcapng.StatisticsLen {
		t.Errorf("statistics take %d bytes, StatisticsLen says %d", n, pcapng.StatisticsLen)
	}
	f, err := capture.ReadPcapng(pcapng.AppendStatistics(b, s))
	if err != nil {
		t.Fatalf("%d bytes of payload, comment %q: %v", len(whole), p.Comment, err)
	}
	got := f.Packets[0]
	if !got.Time.Equal(p.Time) || got.Inbound != p.Inbound || got.Comment != p.Comment || got.From != p.From || got.To != p.To ||
		got.Seq != p.Seq || got.Ack != p.Ack || got.Flags != uint8(p.Flags) || !bytes.Equal(got.Payload, whole) {
		t.Errorf("%d bytes of payload: got %+v, want %+v", len(whole), got, p)
	}
}

// TestSizes: packets of every size near the critical ones, in pieces.
func TestSizes(t *testing.T) {
	data := make([]byte, pcapng.MaxPayload)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	sizes := []int{pcapng.MaxPayload - 2, pcapng.MaxPayload - 1, pcapng.MaxPayload}
	for n := range 200 {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for _, s := range []pcapng.Segment{four, six} {
			check(t, packet(s, pcapng.ACK, "a comment"[:n%10]), data[:n/3], nil, data[n/3:n])
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a payload that no packet can carry was taken")
		}
	}()
	pcapng.AppendPacket(nil, packet(four, pcapng.ACK, ""), data, []byte{1})
}

// FuzzPacket reads packets back, with the checksums of an independent implementation.
func FuzzPacket(f *testing.F) {
	f.Add(uint32(7), uint32(9), uint8(0x18), "comment", []byte("payload"), uint(3), true)
	f.Add(uint32(1<<32-1), uint32(0), uint8(0x02), "", []byte{}, uint(0), false)
	f.Add(uint32(1), uint32(0), uint8(0x10), "", bytes.Repeat([]byte{0xff}, pcapng.MaxPayload), uint(40000), false)
	f.Fuzz(func(t *testing.T, seq, ack uint32, flags uint8, comment string, payload []byte, cut uint, v6 bool) {
		s := four
		if v6 {
			s = six
		}
		most := pcapng.MaxPayload
		if pcapng.Flags(flags)&pcapng.SYN != 0 {
			most -= 40 // the header may have that many bytes of options
		}
		payload = payload[:min(len(payload), most)]
		comment = comment[:min(len(comment), 1<<16-1)]
		at := int(cut % uint(len(payload)+1))
		s.Seq, s.Ack, s.Flags = seq, ack, pcapng.Flags(flags)
		check(t, &pcapng.Packet{Time: begun, Comment: comment, Segment: s}, payload[:at], payload[at:])
	})
}
