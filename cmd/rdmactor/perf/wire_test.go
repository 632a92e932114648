package perf

import (
	"strings"
	"testing"
)

func TestRequestAndAnswer(t *testing.T) {
	want, from := Test{Op: Write, Kind: Bandwidth, Size: 4096, Depth: 17}, place{0x1122334455667788, 0x99aabbcc}
	b := encodeRequest(want, from)
	if len(b) != requestLen || len(b) > 56 {
		t.Errorf("a request has %d bytes; InfiniBand leaves 56", len(b))
	}
	got, at, err := decodeRequest(append(b, make([]byte, 20)...)) // padded
	if got != want || at != from || err != nil {
		t.Errorf("%+v at %v became %+v at %v, %v", want, from, got, at, err)
	}
	if at, err := decodeAnswer(encodeAnswer(from)); at != from || err != nil {
		t.Errorf("an answer of %v became %v, %v", from, at, err)
	}
}

// TestStrangers: bytes that are not a request of rdmactor perf are refused with a readable error.
func TestStrangers(t *testing.T) {
	with := func(at int, x byte) []byte {
		b := encodeRequest(Test{Op: Send, Kind: Latency, Size: 64, Depth: 1}, place{})
		b[at] = x
		return b
	}
	for want, b := range map[string][]byte{
		"no rdmactor perf":      nil,
		"data is 68656c6c6":     []byte("hello"),
		"no rdmactor":           with(0, 'R'),
		"speaks version 9":      with(8, 9),
		"no operation \"\"":     with(9, 0),
		"of operation 4":        with(9, 4),
		"no test 200":           with(10, 200),
		"cannot measure":        with(10, 0),
		"depth 0":               with(15, 0),
		"depth 2":               with(15, 2),
		"depth 65537":           with(13, 1),
		"size 0":                with(19, 0),
		"size 4278190144":       with(16, 0xff),
		"the most is 268435456": encodeRequest(Test{Op: Send, Kind: Bandwidth, Size: MaxSize, Depth: 2}, place{}),
	} {
		if _, _, err := decodeRequest(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v, want an error that says %q", b, err, want)
		}
	}
	if _, err := decodeAnswer(encodeAnswer(place{})[:answerLen-1]); err == nil {
		t.Error("an answer that is cut off was taken")
	}
}

// FuzzRequest: untrusted bytes never cause a panic, and accepted requests are within the limits.
func FuzzRequest(f *testing.F) {
	f.Add(encodeRequest(Test{Op: Read, Kind: Latency, Size: 1, Depth: 1}, place{1, 2}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, _, err := decodeRequest(b); err == nil && got.Check() != nil {
			t.Errorf("%x: took %+v: %v", b, got, got.Check())
		}
	})
}
