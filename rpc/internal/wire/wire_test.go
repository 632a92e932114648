package wire

import (
	"bytes"
	"testing"
	"time"
)

// The bytes are those of docs/rpc-wire.md.
func TestBytesOnTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"call": {
			frame(Header{Type: FrameCall, Flags: FlagMillis, Number: 3, Call: NewCallID(5, 2), Arg: 1500}, "hi"),
			"\x02\x01\x00\x03\x00\x00\x00\x02\x00\x02\x00\x05\x00\x00\x05\xdchi",
		},
		"client's hello": {Hello{Version: 1, Window: 64}.Bytes(), "\x7e\xdb\x01\x00\x00\x00\x00\x40"},
		"server's hello": {Hello{Version: 1, Calls: 1024}.Bytes(), "\x7e\xdb\x01\x00\x04\x00\x00\x00"},
		"error":          {AppendError(nil, "no", []byte{9}), "\x00\x02no\x09"},
	} {
		if !bytes.Equal(c.got, []byte(c.want)) {
			t.Errorf("%s: %x, want %x", name, c.got, c.want)
		}
	}
}

func TestTimeouts(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		1:                          time.Microsecond, // 0 would be none
		time.Microsecond:           time.Microsecond,
		time.Minute + 1:            time.Minute,
		71 * time.Minute:           71 * time.Minute,
		72*time.Minute + 1500*1000: 72*time.Minute + time.Millisecond,
		49 * 24 * time.Hour:        49 * 24 * time.Hour,
		50 * 24 * time.Hour:        0, // none
		1<<63 - 1:                  0,
		-time.Second:               time.Microsecond,
	} {
		arg, flags := PutTimeout(d)
		if got := (Header{Flags: flags, Arg: arg}).Timeout(); got != want {
			t.Errorf("%v travels as %v, want %v", d, got, want)
		}
	}
}

// frame returns a frame with its body.
func frame(h Header, body string) []byte {
	h.Length = uint32(len(body))
	b := make([]byte, HeaderLen, HeaderLen+len(body))
	h.Put(b)
	return append(b, body...)
}

// Frames that were written are read back, and an incomplete frame is an error.
func TestFramesComeBack(t *testing.T) {
	first := frame(Header{Type: FrameCall, Flags: FlagMetadata | FlagStream, Number: 7, Call: NewCallID(65_535, 9), Arg: 1}, "request")
	b := append(first, frame(Header{Type: FrameCancel, Call: 3}, "")...)
	h, body, rest, err := ParseFrame(b)
	if err != nil || h.Call.Slot() != 65_535 || h.Number != 7 || string(body) != "request" || len(rest) != HeaderLen {
		t.Errorf("%+v, %q, %d bytes behind it: %v", h, body, len(rest), err)
	}
	if _ = append(body, 'x'); b[len(first)] == 'x' {
		t.Error("an append to a body has overwritten the next frame")
	}
	for n := 1; n < len(first); n++ {
		if _, _, _, err := ParseFrame(first[:n]); err == nil {
			t.Errorf("%d bytes of a frame of %d are one", n, len(first))
		}
	}
}

// Metadata stands before its request, pair by pair. If it is cut off anywhere it is malformed.
func TestMetadataComesBack(t *testing.T) {
	pairs := AppendPair(AppendPair(nil, "k", "v"), "trace", "")
	b := make([]byte, 2+len(pairs)+len("request"))
	PutRequest(b, pairs, []byte("request"))
	metadata, request, ok := CutMetadata(b)
	if !ok || !bytes.Equal(metadata, pairs) || string(request) != "request" {
		t.Fatalf("%q and %q: %v", metadata, request, ok)
	}
	k, v, rest, ok := NextPair(metadata)
	if !ok || string(k) != "k" || string(v) != "v" {
		t.Errorf("%q is %q: %v", k, v, ok)
	}
	if k, v, rest, ok = NextPair(rest); !ok || string(k) != "trace" || len(v) > 0 || len(rest) > 0 {
		t.Errorf("%q is %q, %q behind it: %v", k, v, rest, ok)
	}
	for n := range 2 + len(pairs) {
		if _, _, ok := CutMetadata(b[:n]); ok {
			t.Errorf("%d bytes of %d are metadata", n, 2+len(pairs))
		}
	}
}
