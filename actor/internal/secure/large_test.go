package secure

import (
	"bytes"
	"fmt"
	"testing"
)

// largePair returns the two ends of one direction's large messages.
func largePair(t testing.TB, s Suite) (*LargeSealer, *LargeOpener) {
	t.Helper()
	secret := bytes.Repeat([]byte{9}, s.hashFunc()().Size())
	out, err := newLargeSecret(s, secret)
	if err != nil {
		t.Fatal(err)
	}
	in, err := newLargeSecret(s, secret)
	if err != nil {
		t.Fatal(err)
	}
	return &LargeSealer{out}, &LargeOpener{in}
}

// sealLarge seals n bytes in memory that is exactly large enough.
func sealLarge(t testing.TB, l *LargeSealer, n int) (sealed []byte, number uint64) {
	t.Helper()
	b := make([]byte, LargeLen(n))
	for i := range n {
		b[i] = byte(i + i>>8 + i>>16)
	}
	m, number, err := l.Begin(b, b[:n])
	if err != nil {
		t.Fatal(err)
	}
	count := 1
	for m.Next() {
		count++
	}
	if count != segmentCount(n) {
		t.Fatalf("%d segments, want %d", count, segmentCount(n))
	}
	return b, number
}

func openLarge(l *LargeOpener, b []byte, n int, number uint64) error {
	if err := l.Offered(number); err != nil {
		return err
	}
	m, err := l.Begin(b, n, number)
	for more := true; more && err == nil; {
		more, err = m.Next()
	}
	return err
}

// Also where the last segment is shorter than a tag.
var largeLengths = []int{
	1, 15, 16, 17, SegmentLen - 1, SegmentLen, SegmentLen + 1, SegmentLen + 15, SegmentLen + 16, SegmentLen + 17,
	2 * SegmentLen, 2*SegmentLen + 3, 3*SegmentLen + 100,
}

func TestLarge(t *testing.T) {
	for _, s := range suites {
		sealer, opener := largePair(t, s)
		for _, n := range largeLengths {
			want := make([]byte, n)
			for i := range want {
				want[i] = byte(i + i>>8 + i>>16)
			}
			b, number := sealLarge(t, sealer, n)
			if n > 16 && bytes.Contains(b, want[n-16:]) {
				t.Fatalf("%v, %d bytes: the end is in the clear", s, n)
			}
			if err := openLarge(opener, b, n, number); err != nil || !bytes.Equal(b[:n], want) {
				t.Fatalf("%v, %d bytes: %v", s, n, err)
			}
		}
	}
}

// TestLargeElsewhere: a message may be sealed into other memory, and stays unchanged.
func TestLargeElsewhere(t *testing.T) {
	for _, s := range suites {
		for _, n := range largeLengths {
			message := make([]byte, n)
			for i := range message {
				message[i] = byte(i + i>>8 + i>>16)
			}
			same := bytes.Clone(message)
			in, _ := largePair(t, s)
			want, _ := sealLarge(t, in, n)
			out, _ := largePair(t, s)
			b := bytes.Repeat([]byte{0xEE}, LargeLen(n))
			m, _, err := out.Begin(b, message)
			if err != nil {
				t.Fatal(err)
			}
			for m.Next() { // each call seals a segment
			}
			if !bytes.Equal(b, want) || !bytes.Equal(message, same) {
				t.Fatalf("%v, %d bytes: sealed otherwise than in place, or the message was changed", s, n)
			}
		}
	}
}

// TestLargeChanged: bits changed around each border, segments and tags moved, and other lengths.
func TestLargeChanged(t *testing.T) {
	const n = 2*SegmentLen + 5
	sealer, _ := largePair(t, AES256GCM)
	sealed, number := sealLarge(t, sealer, n)
	other, _ := sealLarge(t, sealer, n)
	check := func(why string, b []byte, n int) {
		t.Helper()
		_, opener := largePair(t, AES256GCM)
		wantTampered(t, why, openLarge(opener, b, n, number))
		if !bytes.Equal(b[:n], make([]byte, n)) {
			t.Errorf("%s: something of the message is left in memory", why)
		}
	}
	for _, at := range []int{0, SegmentLen - 1, SegmentLen, 2*SegmentLen - 1, 2 * SegmentLen, n - 1, n, n + 15, n + 16, len(sealed) - 1} {
		b := bytes.Clone(sealed)
		b[at] ^= 0x80
		check(fmt.Sprintf("byte %d", at), b, n)
	}
	b := bytes.Clone(sealed)
	copy(b, sealed[SegmentLen:2*SegmentLen])
	copy(b[SegmentLen:], sealed[:SegmentLen])
	copy(b[n:], sealed[n+Overhead:n+2*Overhead])
	copy(b[n+Overhead:], sealed[n:n+Overhead])
	check("two segments exchanged", b, n)

	cut := append(bytes.Clone(sealed[:2*SegmentLen]), sealed[n:n+2*Overhead]...)
	check("cut after a segment", cut, 2*SegmentLen)
	check("another message", bytes.Clone(other), n)
}

// TestLargeFlips: every byte of a small one.
func TestLargeFlips(t *testing.T) {
	for _, s := range suites {
		sealer, _ := largePair(t, s)
		sealed, number := sealLarge(t, sealer, 40)
		flips(sealed, func(at int, b []byte) {
			_, opener := largePair(t, s)
			wantTampered(t, fmt.Sprintf("byte %d", at), openLarge(opener, b, 40, number))
		})
	}
}

// TestLargeNumbers: a message is offered once, messages may be left out, and the number identifies
// it.
func TestLargeNumbers(t *testing.T) {
	sealer, opener := largePair(t, AES256GCM)
	first, one := sealLarge(t, sealer, 100)
	_, two := sealLarge(t, sealer, 100)
	third, three := sealLarge(t, sealer, 100)
	if one != 1 || two != 2 || three != 3 {
		t.Fatalf("numbers %d, %d, %d", one, two, three)
	}
	again := bytes.Clone(first)
	if err := openLarge(opener, first, 100, one); err != nil {
		t.Fatal(err)
	}
	wantTampered(t, "offered again", opener.Offered(one))
	wantTampered(t, "number 0", opener.Offered(0))
	if err := openLarge(opener, third, 100, three); err != nil {
		t.Fatal(err)
	}
	wantTampered(t, "an earlier one", opener.Offered(two))
	wantTampered(t, "with another's number", openLarge(opener, again, 100, 4))
}

// TestLargeMemory: memory that is too small is an error of the caller's.
func TestLargeMemory(t *testing.T) {
	sealer, opener := largePair(t, AES256GCM)
	for _, n := range []int{0, 1} {
		_, _, err := sealer.Begin(make([]byte, 16), make([]byte, n))
		wantConfig(t, fmt.Sprint(n), err)
	}
	for _, n := range []int{-1, 0, 1} {
		_, err := opener.Begin(make([]byte, 16), n, 1)
		wantConfig(t, fmt.Sprint(n), err)
	}
	_, number := sealLarge(t, sealer, 1)
	if number != 1 {
		t.Errorf("number %d: those that did not begin have used some up", number)
	}
}

// TestLargeReflection: a side's sealed message does not open as its peer's.
func TestLargeReflection(t *testing.T) {
	c := talk(t, AES256GCM)
	b, number := sealLarge(t, c.client.SealLarge, 100)
	wantTampered(t, "our own", openLarge(c.client.OpenLarge, bytes.Clone(b), 100, number))
	if err := openLarge(c.server.OpenLarge, b, 100, number); err != nil {
		t.Error(err)
	}
}

// TestSegmentsAllocateNothing: a message costs what its key does, however long it is.
func TestSegmentsAllocateNothing(t *testing.T) {
	for _, s := range suites {
		sealer, opener := largePair(t, s)
		b := make([]byte, LargeLen(8*SegmentLen))
		m, number, err := sealer.Begin(b, b[:8*SegmentLen])
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(7, func() { m.Next() }); n != 0 {
			t.Errorf("%v: %v allocations to seal a segment", s, n)
		}
		o, err := opener.Begin(b, 8*SegmentLen, number)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(7, func() {
			if _, err := o.Next(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations to open a segment", s, n)
		}
	}
}
