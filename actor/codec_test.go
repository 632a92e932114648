package actor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestHelloRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := hello{
			version: helloVersion, credits: rapid.IntRange(1, 0xFFFF).Draw(t, "credits"),
			eager: rapid.IntRange(1, maxEager/kib).Draw(t, "KiB") * kib, maxMessage: rapid.IntRange(1, math.MaxUint32).Draw(t, "bytes"),
		}
		user := rapid.SliceOfN(rapid.Byte(), 0, maxUserData).Draw(t, "user")
		padding := rapid.IntRange(0, 64).Draw(t, "padding")
		b := append(in.put(user), make([]byte, padding)...)
		out, got, ok := parseHello(b, true)
		if !ok || out != in || !bytes.Equal(got, user) {
			t.Fatalf("%+v %x came back as %v %+v %x", in, user, ok, out, got)
		}
		if _, _, ok := parseHello(b, false); ok != (padding == 0) {
			t.Fatalf("a transport that does not pad: %d bytes too many, ok %v", padding, ok)
		}
	})
}

// A hello cut short is no hello: the bytes are a foreign peer's.
func TestHelloPrefixes(t *testing.T) {
	b := hello{credits: 32, eager: 16 * kib, maxMessage: 64 * kib}.put([]byte("echo/1"))
	for n := range b {
		if _, user, ok := parseHello(b[:n], false); ok || !bytes.Equal(user, b[:n]) {
			t.Errorf("%d of %d bytes: ok %v, user data %x", n, len(b), ok, user)
		}
	}
}

func TestHelloOfOthers(t *testing.T) {
	good := hello{credits: 32, eager: 16 * kib, maxMessage: 64 * kib}.put([]byte("x"))
	change := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for name, b := range map[string][]byte{
		"other magic":      change(0, 0),
		"version 0":        change(2, 0),
		"longer than sent": change(3, 2),
		"no credits":       change(5, 0),
		"nothing at once":  change(7, 0),
		"no message":       change(9, 0), // 64 KiB: 00 01 00 00
		"an earlier one":   change(2, 1),
		"padding not zero": append(bytes.Clone(good), 0, 1),
	} {
		if _, user, ok := parseHello(b, true); ok || !bytes.Equal(user, b) {
			t.Errorf("%s: taken for a hello", name)
		}
	}
	if h, user, ok := parseHello(change(2, 9), true); !ok || h.version != helloVersion || string(user) != "x" {
		t.Error("a later version was not taken: the one that connects adapts to what the other says")
	}
}

// A peer of version 2 says what its receives hold in two bytes, and reads ours so. Features that
// are not known are not looked at.
func TestHelloOfVersion2(t *testing.T) {
	b := hello{credits: 32, eager: 16 * kib, maxMessage: 64 * kib}.put(nil)
	if n := binary.BigEndian.Uint16(b[6:]); n != 16 {
		t.Errorf("a peer of version 2 reads %d KiB, want 16", n)
	}
	b[6] = 0x80
	if h, _, ok := parseHello(b, false); !ok || h.eager != 16*kib {
		t.Errorf("with a feature that is not known the hello is %+v, %v", h, ok)
	}
	b[2] = 2
	if h, _, ok := parseHello(b, false); !ok || h.version != 2 || h.eager != 0x8010*kib {
		t.Errorf("of a peer of version 2 the hello is %+v, %v", h, ok)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(hello{credits: 1, eager: kib, maxMessage: kib}.put(nil), false)
	f.Add(append(hello{credits: 9, eager: kib, maxMessage: 1 << 30}.put([]byte("abc")), 0, 0), true)
	f.Add([]byte("GET / HTTP/1.1"), false)
	f.Fuzz(func(t *testing.T, b []byte, padded bool) {
		h, user, ok := parseHello(b, padded)
		if !ok {
			if !bytes.Equal(user, b) {
				t.Fatalf("a foreign peer's private data changed: %x to %x", b, user)
			}
			return
		}
		again := h.put(user)
		switch h.version {
		case 2:
			again[2] = 2
			binary.BigEndian.PutUint16(again[6:], uint16(h.eager/kib))
		default:
			again[2], again[6] = b[2], b[6] // a later version, and features that nobody knows
		}
		if !bytes.Equal(again, b[:len(again)]) || !zeros(b[len(again):]) {
			t.Fatalf("%x parsed as %+v %x, which is %x", b, h, user, again)
		}
	})
}

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := header{
			typ:      rapid.SampledFrom([]uint8{typeData, typeCredit, typeOffer}).Draw(t, "type"),
			flags:    rapid.SampledFrom([]uint8{0, flagAckNow}).Draw(t, "flags"),
			pulled:   rapid.Uint16().Draw(t, "pulled"),
			consumed: rapid.Uint32().Draw(t, "consumed"),
		}
		b := make([]byte, headerLen)
		in.put(b)
		if in.typ == typeOffer {
			b = append(b, make([]byte, offerLen)...)
		}
		if out, err := parseHeader(b); err != nil || out != in {
			t.Fatalf("%+v came back as %+v, %v", in, out, err)
		}
	})
}

func TestMalformedHeaders(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":                   nil,
		"short":                   {typeData, 0, 0, 0, 0, 0, 0},
		"type 0":                  {0, 0, 0, 0, 0, 0, 0, 0},
		"type 7":                  {7, 0, 0, 0, 0, 0, 0, 0},
		"goodbye with data":       {typeGoodbye, 0, 0, 0, 0, 0, 0, 0, 'x'},
		"flag 2":                  {typeData, 2, 0, 0, 0, 0, 0, 0},
		"half an offer":           {typeOffer, 0, 0, 0, 0, 0, 0, 0, 'x'},
		"more than an offer":      make25(typeOffer),
		"credit update with data": {typeCredit, 0, 0, 0, 0, 0, 0, 0, 'x'},
	} {
		_, err := parseHeader(b)
		var p *ProtocolError
		if !errors.As(err, &p) || !errors.Is(err, unix.EPROTO) {
			t.Errorf("%s: %v, want a ProtocolError that is EPROTO", name, err)
		}
	}
}

// make25 is a message of 25 bytes, one more than an offer has.
func make25(typ uint8) []byte { return append([]byte{typ}, make([]byte, headerLen+offerLen)...) }

func FuzzHeader(f *testing.F) {
	f.Add([]byte{typeData, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Add([]byte{typeCredit, flagAckNow, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		var again [headerLen]byte
		h.put(again[:])
		if !bytes.Equal(again[:], b[:headerLen]) {
			t.Fatalf("%x parsed as %+v, which is %x", b, h, again)
		}
	})
}

func FuzzOffer(f *testing.F) {
	f.Add(make([]byte, offerLen), 1)
	f.Add(bytes.Repeat([]byte{0xFF}, offerLen), math.MaxInt32)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		b = append(b, make([]byte, offerLen)...)[:offerLen] // parseHeader has seen to it
		o, err := parseOffer(b, limit)
		if err != nil {
			is(t, err, unix.EPROTO)
			return
		}
		if o.length == 0 || int(o.length) > limit || o.addr+uint64(o.length-1) < o.addr {
			t.Fatalf("%+v is within %d", o, limit)
		}
		var again [offerLen]byte
		o.put(again[:])
		if !bytes.Equal(again[:], b) {
			t.Fatalf("%x parsed as %+v, which is %x", b, o, again)
		}
	})
}

// Whatever the peer's headers say, the counts stay within what was sent and granted.
func TestCreditsAgainstAnyPeer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint32().Draw(t, "start") // the counts wrap
		c := credits{send: 4, receive: 3, sent: start, acked: start, received: start, consumed: start, stated: start}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				if c.window() > 0 {
					c.sent++
				}
			case 1:
				if c.consumed != c.received {
					c.consumed++
				}
			case 2:
				h := header{typ: typeData, consumed: start + uint32(rapid.IntRange(-2, 60).Draw(t, "consumed"))}
				before := c
				if c.take(h) != nil {
					return // the connection ends here
				}
				if h.consumed-before.acked > before.sent-before.acked {
					t.Fatalf("took %d consumed of %d sent", h.consumed, before.sent)
				}
			}
			if c.window() > 4 || c.received-c.consumed > 3 || c.sent-c.acked > 4 {
				t.Fatalf("out of bounds: %+v", c)
			}
		}
	})
}

func TestCreditUpdatesAreDueAtHalfTheWindow(t *testing.T) {
	c := credits{send: 8, receive: 8, received: 8}
	for i := range 8 {
		if due := c.due(); due != (i >= 4) {
			t.Errorf("%d of 8 consumed and not stated: due %v", i, due)
		}
		c.consumed++
	}
	c.told(0)
	if c.due() {
		t.Error("still due after an update")
	}
	if err := c.take(header{typ: typeCredit, flags: flagAckNow}); err != nil || !c.due() {
		t.Errorf("ack-now with everything consumed: %v, due %v", err, c.due())
	}
}

func TestSendQueueKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q sendQueue
		var model []*Send
		for range 200 {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				s := NewSend(nil)
				q.push(s)
				model = append(model, s)
			case 1:
				if len(model) == 0 {
					continue
				}
				if got := q.pop(); got != model[0] {
					t.Fatal("not the oldest")
				}
				model = model[1:]
			case 2:
				s := NewSend(nil)
				q.unpop(s)
				model = append([]*Send{s}, model...)
			}
			if q.len() != len(model) {
				t.Fatalf("%d messages, want %d", q.len(), len(model))
			}
		}
	})
}
