package wire

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func FuzzReceives(f *testing.F) {
	f.Add(make([]byte, ReceivesLen))
	f.Add([]byte{0, 0, 0, 48, 0, 0, 64, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append(b, make([]byte, ReceivesLen)...)[:ReceivesLen] // ParseHeader has seen to it
		r, err := ParseReceives(b)
		if (err != nil) != (r.Size < 1<<10) || err != nil && !errors.Is(err, unix.EPROTO) {
			t.Fatalf("%x is %+v, %v", b, r, err)
		}
		var again [ReceivesLen]byte
		if r.Put(again[:]); string(again[:]) != string(b) {
			t.Fatalf("%x parsed as %+v, which is %x", b, r, again)
		}
	})
}

// pairOf returns two sides of the latest version.
func pairOf() (a, b end) {
	for _, e := range []*end{&a, &b} {
		e.Session = NewSession(4)
		e.Agree(Hello{Version: helloVersion, Credits: 4})
	}
	return a, b
}

// A change of receives is confirmed by a later header of the peer's, and not by one that was under
// way before.
func TestChangeOfReceivesIsAnswered(t *testing.T) {
	a, b := pairOf()
	for range 3 {
		b.say(TypeData, 0) // crosses the change
		a.say(TypeReceives, 0)
		for step, want := range []bool{true, false} {
			if err := a.Take(b.out[0]); err != nil || a.Resizing() != want {
				t.Fatalf("header %d of the peer's: %v, not known to be taken in: %v", step, err, a.Resizing())
			}
			if b.out = b.out[1:]; step == 1 {
				break
			}
			if err := b.Take(a.out[0]); err != nil {
				t.Fatal(err)
			}
			a.out = a.out[1:]
			b.say(TypeCredit, 0)
		}
		a.Consume()
		a.say(TypeCredit, 0)
		if err := b.Take(a.out[0]); err != nil {
			t.Fatal(err)
		}
		a.out = nil
	}
}

// A second change before the first was answered, an answer to none, and a change before the peer's
// hello break the protocol.
func TestChangesOfReceivesThatMayNotBe(t *testing.T) {
	_, b := pairOf()
	if err := b.Take(Header{Type: TypeReceives}); err != nil {
		t.Fatal(err)
	}
	if err := b.Take(Header{Type: TypeReceives}); !errors.Is(err, unix.EPROTO) {
		t.Errorf("a second one: %v", err)
	}
	a, _ := pairOf()
	if err := a.Take(Header{Type: TypeCredit, Flags: Resized}); !errors.Is(err, unix.EPROTO) {
		t.Errorf("an answer to none: %v", err)
	}
	a, _ = pairOf()
	a.say(TypeReceives, 0)
	for i, flags := range []uint8{0, Resized, 0} {
		if err := a.Take(Header{Type: TypeCredit, Flags: flags}); (err != nil) != (i == 2) {
			t.Errorf("header %d: %v", i, err)
		}
	}
	early := NewSession(4)
	if err := early.Take(Header{Type: TypeReceives}); !errors.Is(err, unix.EPROTO) {
		t.Errorf("before the hello: %v", err)
	}
}

// Both kinds of connection parse it alike.
func TestReceivesParse(t *testing.T) {
	b := append(TypeReceives.Put(nil), make([]byte, ReceivesLen)...)
	for name, parse := range map[string]func([]byte) (Header, error){"plain": ParseHeader, "secured": ParseSecuredHeader} {
		if h, err := parse(b); err != nil || h.Type != TypeReceives {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		for _, wrong := range [][]byte{b[:len(b)-1], append(b[:len(b):len(b)], 0)} {
			if _, err := parse(wrong); err == nil {
				t.Errorf("%s: taken with %d bytes", name, len(wrong))
			}
		}
	}
}
