package actor

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// A slice names exactly the requested bytes, has the rights of the whole, and survives the wire.
// Bytes outside of the key are refused.
func TestSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Uint32Range(1, math.MaxUint32).Draw(t, "length")
		key := RemoteKey{
			Addr: rapid.Uint64Range(0, math.MaxUint64-uint64(length)).Draw(t, "address"), RKey: 7, Length: length, Rights: RemoteRead | RemoteAtomic,
		}
		edge := rapid.SampledFrom([]int{0, 1, int(length) - 1, int(length), int(length) + 1, math.MaxInt, math.MinInt, -1})
		off := rapid.OneOf(edge, rapid.IntRange(0, int(length))).Draw(t, "off")
		n := rapid.OneOf(edge, rapid.IntRange(0, int(length))).Draw(t, "n")
		part, err := key.Slice(off, n)
		if valid := off >= 0 && n > 0 && off < int(length) && n <= int(length)-off; (err == nil) != valid {
			t.Fatalf("bytes %d+%d of %d: %v, want valid %v", off, n, length, err, valid)
		}
		if err != nil {
			return
		}
		want := RemoteKey{Addr: key.Addr + uint64(off), RKey: 7, Length: uint32(n), Rights: key.Rights}
		b, err := part.MarshalBinary()
		var back RemoteKey
		if err != nil || back.UnmarshalBinary(b) != nil || part != want || back != want {
			t.Fatalf("bytes %d+%d of %+v: %+v, over the wire %+v", off, n, key, part, back)
		}
		if whole, err := part.Slice(0, n); err != nil || whole != part {
			t.Fatalf("all of a slice: %+v, %v", whole, err)
		}
	})
	if _, err := (RemoteKey{Length: 4}).Slice(0, 1); err == nil {
		t.Error("a slice of what is not a key")
	}
}

// A slice is used as any key, and this side refuses bytes outside of it. The device knows nothing
// of slices: a peer that widens one reaches the rest, until Revoke.
func TestSliceIsUsed(t *testing.T) {
	onEveryDevice(t, func(t testing.TB, p mate) {
		far := memory(p.server, p.s, 256, rw)
		fill(p.server, p.s, far, "0123456789abcdef")
		key := grant(p.server, p.s, far)
		part, err := key.Slice(8, 8)
		if err != nil {
			t.Fatal(err)
		}
		near := memory(p.client, p.c, 64, 0)
		p.client.send(p.c, &Read{Key: part, Offset: 2, Memory: near, Length: 6})
		next[*ReadDone](p.client)
		for _, cmd := range []Command{&Read{Key: part, Offset: 3, Memory: near, Length: 6}, &Write{Key: part, Memory: near, Length: 9}} {
			p.client.send(p.c, cmd)
			f, _ := next[*AccessError](p.client)
			is(t, f, unix.EINVAL)
		}
		part.Addr, part.Length = part.Addr-8, 16
		p.client.send(p.c, &Read{Key: part, Memory: near, At: 8, Length: 16})
		next[*ReadDone](p.client)
		if b := string(contents(p.client, p.c, near)[:24]); b != "abcdef\x00\x000123456789abcdef" {
			t.Errorf("read %q", b)
		}
		p.server.send(p.s, &Revoke{Memory: far})
		next[*Revoked](p.server)
		p.client.send(p.c, &Read{Key: part, Memory: near, Length: 1})
		until[*Closed](p.client)
		until[*Closed](p.server)
	})
}
