package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// stable fuzzes one kind: decoding never panics and reads no more than there is. Encoding and
// decoding what was decoded does not change it.
func stable(f *testing.F, kind any) {
	for _, c := range captures(f) {
		for _, s := range [][]byte{c.Initiator, c.Responder} {
			_, n, err := wire.ConsumeFrame(s)
			if err != nil {
				f.Add(s)
				continue
			}
			f.Add(s[:n])
			for rest := s[n:]; len(rest) > 0 && len(rest) < 1<<12; rest = rest[n:] {
				p, used, err := wire.ConsumeFPDU(rest)
				if err != nil {
					f.Fatal(err)
				}
				n = used
				f.Add(rest[:n])
				f.Add(p.ULPDU)
				if len(p.ULPDU) > wire.UntaggedLen {
					f.Add(p.ULPDU[wire.UntaggedLen:])
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, n, err := decode(kind, b)
		if err != nil {
			if n != 0 {
				t.Fatalf("used %d bytes and failed: %v", n, err)
			}
			return
		}
		if n > len(b) {
			t.Fatalf("used %d of %d bytes", n, len(b))
		}
		again, m, err := decode(kind, encode(v))
		if err != nil || m != n {
			t.Fatalf("encoded again: used %d instead of %d bytes: %v", m, n, err)
		}
		if d := cmp.Diff(v, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("encoded again (-first +second):\n%s", d)
		}
	})
}

func FuzzFrame(f *testing.F)       { stable(f, wire.Frame{}) }
func FuzzFPDU(f *testing.F)        { stable(f, wire.FPDU{}) }
func FuzzHeader(f *testing.F)      { stable(f, wire.Header{}) }
func FuzzReadRequest(f *testing.F) { stable(f, wire.ReadRequest{}) }
func FuzzTerminate(f *testing.F)   { stable(f, wire.Terminate{}) }
