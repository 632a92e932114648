package secure

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestManInTheMiddle: whatever an attacker on the path does with the messages of two connections,
// each side gets a beginning of its peer's messages, in order, and then an error or nothing.
func TestManInTheMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(pskSuites).Draw(t, "suite")
		a, b := talk(t, s), talk(t, s)
		ways := []struct {
			out *Sealer
			in  *Opener
		}{{a.client.Seal, a.server.Open}, {a.server.Seal, a.client.Open}, {b.client.Seal, b.server.Open}, {b.server.Seal, b.client.Open}}
		var said [4][]string
		var seen [][]byte // all that was on any path
		var waiting [4][][]byte
		for way := range ways {
			for i := range rapid.IntRange(0, 6).Draw(t, "messages") {
				text := fmt.Sprintf("%d of way %d", i, way)
				sealed, err := ways[way].out.Seal(nil, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				said[way] = append(said[way], text)
				seen = append(seen, sealed)
				waiting[way] = append(waiting[way], sealed)
			}
		}
		if len(seen) == 0 {
			return
		}
		var got [4][]string
		var ended [4]bool
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			way := rapid.IntRange(0, 3).Draw(t, "way")
			given := attack(t, seen, &waiting[way])
			if given == nil {
				continue
			}
			text, err := ways[way].in.Open(nil, bytes.Clone(given))
			if err != nil {
				wantTampered(t, "an attack", err)
				ended[way] = true
				continue
			}
			if ended[way] {
				t.Fatalf("way %d: %q after its end", way, text)
			}
			got[way] = append(got[way], string(text))
		}
		for way := range ways {
			for i, text := range got[way] {
				if i >= len(said[way]) || text != said[way][i] {
					t.Fatalf("way %d got %q, and %q was said", way, got[way], said[way])
				}
			}
		}
	})
}

// attack returns the next message that an attacker on the path delivers, or nil.
func attack(t *rapid.T, seen [][]byte, waiting *[][]byte) []byte {
	next := func() []byte {
		if len(*waiting) == 0 {
			return nil
		}
		b := (*waiting)[0]
		*waiting = (*waiting)[1:]
		return b
	}
	switch rapid.SampledFrom([]string{"deliver", "deliver", "deliver", "deliver", "drop", "flip", "cut", "add", "other"}).Draw(t, "attack") {
	case "deliver":
		return next()
	case "drop":
		next()
	case "flip":
		if b := bytes.Clone(next()); b != nil {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			return b
		}
	case "cut":
		if b := next(); b != nil {
			return b[:rapid.IntRange(0, len(b)-1).Draw(t, "length")]
		}
	case "add":
		if b := next(); b != nil {
			return append(bytes.Clone(b), rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "more")...)
		}
	case "other": // replayed, reordered, reflected or of another connection
		return rapid.SampledFrom(seen).Draw(t, "message")
	}
	return nil
}
