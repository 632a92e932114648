package rpc

import (
	"bytes"
	"testing"
	"time"
)

// The bytes are those of docs/rpc.md.
func TestBytesOnTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"call": {
			frame(header{typ: frameCall, flags: flagMillis, number: 3, call: newCallID(5, 2), arg: 1500}, "hi"),
			"\x02\x01\x00\x03\x00\x00\x00\x02\x00\x02\x00\x05\x00\x00\x05\xdchi",
		},
		"client's hello": {hello{version: 1, window: 64}.put(), "\x7e\xdb\x01\x00\x00\x00\x00\x40"},
		"server's hello": {hello{version: 1, calls: 1024}.put(), "\x7e\xdb\x01\x00\x04\x00\x00\x00"},
		"error":          {appendError(nil, "no", []byte{9}), "\x00\x02no\x09"},
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
		arg, flags := putTimeout(d)
		if got := (header{flags: flags, arg: arg}).timeout(); got != want {
			t.Errorf("%v travels as %v, want %v", d, got, want)
		}
	}
}
