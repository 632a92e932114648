package wire

import (
	"bytes"
	"testing"
)

// FuzzFrames parses any bytes, as both sides do before they handle a frame.
func FuzzFrames(f *testing.F) {
	f.Add(frame(Header{Type: FrameCall, Flags: FlagMetadata, Arg: 7}, "\x00\x04\x01k\x00\x01vq"))
	f.Add(frame(Header{Type: FrameError, Number: 3}, "\x00\x02nodetails"))
	f.Add(append(frame(Header{Type: FrameDeclare}, "test.Echo"), make([]byte, HeaderLen)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			h, body, rest, err := ParseFrame(b)
			if err != nil {
				return
			}
			again := make([]byte, HeaderLen)
			h.Put(again)
			if !bytes.Equal(append(again, body...), b[:len(b)-len(rest)]) {
				t.Fatalf("%+v %x became %x", h, b, again)
			}
			if h.Timeout() < 0 {
				t.Fatal(h.Timeout())
			}
			if m, q, ok := CutMetadata(body); ok && len(m)+len(q)+2 != len(body) {
				t.Fatalf("%d + %d of %d bytes", len(m), len(q), len(body))
			}
			if text, details, err := ParseError(body); err == nil && len(body) > 0 && len(text)+len(details)+2 != len(body) {
				t.Fatalf("%d + %d of %d bytes", len(text), len(details), len(body))
			}
			b = rest
		}
	})
}

// FuzzHello parses any private data as a hello.
func FuzzHello(f *testing.F) {
	f.Add(Hello{Version: 1, Calls: 9, Window: 64}.Bytes())
	f.Add(append(Hello{Version: 1}.Bytes(), make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := ParseHello(b)
		if !ok {
			return
		}
		if again, ok := ParseHello(h.Bytes()); !ok || again != h {
			t.Fatalf("%+v became %+v", h, again)
		}
	})
}
