package wire

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// FuzzBundle: what is accepted consists of its messages, and nothing reads beyond it.
func FuzzBundle(f *testing.F) {
	f.Add([]byte{0, 0})
	f.Add([]byte{0, 1, 'a', 0, 0, 0, 2, 'b', 'c'})
	f.Add([]byte{0, 3, 'a'})
	f.Add(make([]byte, BundledLen*(MaxBundle+1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)[:len(b):len(b)]
		n, err := CountBundle(b)
		if err != nil {
			if !errors.Is(err, unix.EPROTO) || n != 0 {
				t.Fatalf("%d messages and %v, want EPROTO", n, err)
			}
			return
		}
		if n < 1 || n > MaxBundle {
			t.Fatalf("%d messages", n)
		}
		var again []byte
		for rest := b; n > 0; n-- {
			var m []byte
			if m, rest = CutBundled(rest); len(m) != cap(m) {
				t.Fatal("to append to a message would overwrite the next")
			}
			if again = AppendBundled(again, m); n == 1 && len(rest) != 0 {
				t.Fatalf("%d bytes behind the last message", len(rest))
			}
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("%x is parsed as %x", b, again)
		}
	})
}

// A bundle of n messages takes n credits, which its sender and its receiver count alike, and only a
// peer of version 5 may send it.
func TestBundlesTakeCredits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const credits = 20
		a, b := NewSession(credits), NewSession(credits)
		a.Agree(Hello{Version: 5, Credits: credits})
		b.Agree(Hello{Version: 5, Credits: credits})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch n := rapid.IntRange(1, credits).Draw(t, "messages"); {
			case n <= int(a.Window()):
				h := a.Header(TypeBundle, 0)
				a.SentBundle(n)
				if err := b.TakeBundle(h, n); err != nil {
					t.Fatal(err)
				}
			case rapid.Bool().Draw(t, "too many"):
				beyond := b
				if err := beyond.TakeBundle(a.Header(TypeBundle, 0), credits-b.Unfreed()+1); !errors.Is(err, unix.EPROTO) {
					t.Fatalf("one message more than credits: %v", err)
				}
			}
			for range rapid.IntRange(0, b.Unfreed()).Draw(t, "consumed") {
				b.Consume()
			}
			if typ, flags, ok := b.Next(); ok {
				h := b.Header(typ, flags)
				b.Sent(typ, flags)
				if err := a.Take(h); err != nil {
					t.Fatal(err)
				}
				if int(a.Window()) != credits-b.Unfreed() {
					t.Fatalf("the sender may send %d, and %d are not consumed", a.Window(), b.Unfreed())
				}
			}
		}
	})
	early := NewSession(4) // the accepting side's first messages may overtake its hello
	if err := early.TakeBundle(Header{Type: TypeBundle}, 4); err != nil || early.Bundles() {
		t.Errorf("a bundle before the versions are known: %v", err)
	}
	for version := uint8(helloOldest); version <= 5; version++ {
		s := NewSession(4)
		s.Agree(Hello{Version: version, Credits: 4})
		if err := s.TakeBundle(Header{Type: TypeBundle}, 1); (err == nil) != (version == 5) || s.Bundles() != (version == 5) {
			t.Errorf("a bundle of a peer of version %d: %v", version, err)
		}
	}
	s := NewSession(4)
	s.Agree(Hello{Version: 5, Credits: 4})
	if err := s.Take(Header{Type: TypeGoodbye}); err != nil {
		t.Fatal(err)
	}
	if s.TakeBundle(Header{Type: TypeBundle}, 1) == nil {
		t.Error("a bundle behind the goodbye was taken")
	}
}
