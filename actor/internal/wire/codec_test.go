package wire

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
		in := Hello{
			Version: helloVersion, Credits: rapid.IntRange(1, 0xFFFF).Draw(t, "credits"),
			Eager: rapid.IntRange(1, MaxEager/kib).Draw(t, "KiB") * kib, MaxMessage: rapid.IntRange(1, math.MaxUint32).Draw(t, "bytes"),
		}
		user := rapid.SliceOfN(rapid.Byte(), 0, MaxUserData).Draw(t, "user")
		padding := rapid.IntRange(0, 64).Draw(t, "padding")
		b := append(in.Put(user), make([]byte, padding)...)
		out, got, ok := ParseHello(b, true)
		if !ok || out != in || !bytes.Equal(got, user) {
			t.Fatalf("%+v %x came back as %v %+v %x", in, user, ok, out, got)
		}
		if _, _, ok := ParseHello(b, false); ok != (padding == 0) {
			t.Fatalf("a transport that does not pad: %d bytes too many, ok %v", padding, ok)
		}
	})
}

// A hello cut short is no hello: the bytes are a foreign peer's.
func TestHelloPrefixes(t *testing.T) {
	b := Hello{Credits: 32, Eager: 16 * kib, MaxMessage: 64 * kib}.Put([]byte("echo/1"))
	for n := range b {
		if _, user, ok := ParseHello(b[:n], false); ok || !bytes.Equal(user, b[:n]) {
			t.Errorf("%d of %d bytes: ok %v, user data %x", n, len(b), ok, user)
		}
	}
}

func TestHelloOfOthers(t *testing.T) {
	good := Hello{Credits: 32, Eager: 16 * kib, MaxMessage: 64 * kib}.Put([]byte("x"))
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
		"version 3":        change(2, 3),
		"padding not zero": append(bytes.Clone(good), 0, 1),
	} {
		if _, user, ok := ParseHello(b, true); ok || !bytes.Equal(user, b) {
			t.Errorf("%s: taken for a hello", name)
		}
	}
	if h, user, ok := ParseHello(change(2, 9), true); !ok || h.Version != helloVersion || string(user) != "x" {
		t.Error("a later version was not taken: the one that connects adapts to what the other says")
	}
}

// Features that are not known are not looked at.
func TestHelloWithUnknownFeature(t *testing.T) {
	b := Hello{Credits: 32, Eager: 16 * kib, MaxMessage: 64 * kib}.Put(nil)
	b[6] = 0x80
	if h, _, ok := ParseHello(b, false); !ok || h.Eager != 16*kib {
		t.Errorf("with a feature that is not known the hello is %+v, %v", h, ok)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(Hello{Credits: 1, Eager: kib, MaxMessage: kib}.Put(nil), false)
	f.Add(append(Hello{Credits: 9, Eager: kib, MaxMessage: 1 << 30}.Put([]byte("abc")), 0, 0), true)
	f.Add([]byte("GET / HTTP/1.1"), false)
	f.Fuzz(func(t *testing.T, b []byte, padded bool) {
		h, user, ok := ParseHello(b, padded)
		if !ok {
			if !bytes.Equal(user, b) {
				t.Fatalf("a foreign peer's private data changed: %x to %x", b, user)
			}
			return
		}
		again := h.Put(user)
		switch h.Version {
		case 2:
			again[2] = 2
			binary.BigEndian.PutUint16(again[6:], uint16(h.Eager/kib))
		default:
			again[2], again[6] = b[2], b[6] // a later version, and unknown features
		}
		if !bytes.Equal(again, b[:len(again)]) || !allZeros(b[len(again):]) {
			t.Fatalf("%x parsed as %+v %x, which is %x", b, h, user, again)
		}
	})
}

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Header{
			Type:     rapid.SampledFrom([]Type{TypeData, TypeCredit, TypeOffer}).Draw(t, "type"),
			Flags:    rapid.SampledFrom([]uint8{0, AckNow, Resized, AckNow | Resized}).Draw(t, "flags"),
			Pulled:   rapid.Uint16().Draw(t, "pulled"),
			Consumed: rapid.Uint32().Draw(t, "consumed"),
		}
		b := make([]byte, HeaderLen)
		in.Put(b)
		if in.Type == TypeOffer {
			b = append(b, make([]byte, OfferLen)...)
		}
		if out, err := ParseHeader(b); err != nil || out != in {
			t.Fatalf("%+v came back as %+v, %v", in, out, err)
		}
	})
}

func TestMalformedHeaders(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":                   nil,
		"short":                   {byte(TypeData), 0, 0, 0, 0, 0, 0},
		"type 0":                  {0, 0, 0, 0, 0, 0, 0, 0},
		"type 7":                  {7, 0, 0, 0, 0, 0, 0, 0},
		"goodbye with data":       {byte(TypeGoodbye), 0, 0, 0, 0, 0, 0, 0, 'x'},
		"flag 4":                  {byte(TypeData), 4, 0, 0, 0, 0, 0, 0},
		"type 14":                 {14, 0, 0, 0, 0, 0, 0, 0},
		"no receives":             {byte(TypeReceives), 0, 0, 0, 0, 0, 0, 0},
		"too much of receives":    append([]byte{byte(TypeReceives)}, make([]byte, HeaderLen+ReceivesLen)...),
		"half an offer":           {byte(TypeOffer), 0, 0, 0, 0, 0, 0, 0, 'x'},
		"more than an offer":      make25(TypeOffer),
		"credit update with data": {byte(TypeCredit), 0, 0, 0, 0, 0, 0, 0, 'x'},
	} {
		_, err := ParseHeader(b)
		var p *ProtocolError
		if !errors.As(err, &p) || !errors.Is(err, unix.EPROTO) {
			t.Errorf("%s: %v, want a ProtocolError that is EPROTO", name, err)
		}
	}
}

// make25 returns a message of 25 bytes, one more than an offer has.
func make25(typ Type) []byte { return append([]byte{byte(typ)}, make([]byte, HeaderLen+OfferLen)...) }

func FuzzHeader(f *testing.F) {
	f.Add([]byte{byte(TypeData), 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Add([]byte{byte(TypeCredit), AckNow, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			return
		}
		var again [HeaderLen]byte
		h.Put(again[:])
		if !bytes.Equal(again[:], b[:HeaderLen]) {
			t.Fatalf("%x parsed as %+v, which is %x", b, h, again)
		}
	})
}

func FuzzOffer(f *testing.F) {
	f.Add(make([]byte, OfferLen), 1)
	f.Add(bytes.Repeat([]byte{0xFF}, OfferLen), math.MaxInt32)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		b = append(b, make([]byte, OfferLen)...)[:OfferLen] // ParseHeader has seen to it
		o, err := ParseOffer(b, limit)
		if err != nil {
			if !errors.Is(err, unix.EPROTO) {
				t.Fatalf("%v, want EPROTO", err)
			}
			return
		}
		if o.Length == 0 || int(o.Length) > limit || o.Addr+uint64(o.Length-1) < o.Addr {
			t.Fatalf("%+v is within %d", o, limit)
		}
		var again [OfferLen]byte
		o.Put(again[:])
		if !bytes.Equal(again[:], b) {
			t.Fatalf("%x parsed as %+v, which is %x", b, o, again)
		}
	})
}
