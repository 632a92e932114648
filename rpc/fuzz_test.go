package rpc

import (
	"bytes"
	"testing"
)

// FuzzFrames takes any bytes apart as both sides do before they know what a frame is about.
func FuzzFrames(f *testing.F) {
	f.Add(frame(header{typ: frameCall, flags: flagMetadata, arg: 7}, "\x00\x04\x01k\x00\x01vq"))
	f.Add(frame(header{typ: frameError, number: 3}, "\x00\x02nodetails"))
	f.Add(append(declareEcho, make([]byte, headerLen)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			h, body, rest, err := parseFrame(b)
			if err != nil {
				return
			}
			again := make([]byte, headerLen)
			h.put(again)
			if !bytes.Equal(append(again, body...), b[:len(b)-len(rest)]) {
				t.Fatalf("%+v %x became %x", h, b, again)
			}
			if h.timeout() < 0 {
				t.Fatal(h.timeout())
			}
			if m, q, ok := cutMetadata(body); ok && len(m)+len(q)+2 != len(body) {
				t.Fatalf("%d + %d of %d bytes", len(m), len(q), len(body))
			}
			if text, details, err := parseError(body); err == nil && len(body) > 0 && len(text)+len(details)+2 != len(body) {
				t.Fatalf("%d + %d of %d bytes", len(text), len(details), len(body))
			}
			b = rest
		}
	})
}

// FuzzHello takes any private data for a hello.
func FuzzHello(f *testing.F) {
	f.Add(hello{version: 1, calls: 9, window: 64}.put())
	f.Add(append(hello{version: 1}.put(), make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := parseHello(b)
		if !ok {
			return
		}
		if again, ok := parseHello(h.put()); !ok || again != h {
			t.Fatalf("%+v became %+v", h, again)
		}
	})
}
