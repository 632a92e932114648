package secure

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var suites = []Suite{AES256GCM, ChaCha20Poly1305, TLSAES128GCM, TLSAES256GCM}

// pair returns a Sealer and the Opener of its peer.
func pair(t testing.TB, s Suite) (*Sealer, *Opener) {
	t.Helper()
	secret := bytes.Repeat([]byte{7}, s.hashFunc()().Size())
	sealer, err := NewSealer(s, secret)
	if err != nil {
		t.Fatal(err)
	}
	opener, err := NewOpener(s, secret)
	if err != nil {
		t.Fatal(err)
	}
	return sealer, opener
}

func seal(t testing.TB, s *Sealer, text string) []byte {
	t.Helper()
	b, err := s.Seal(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRecordsInPlace(t *testing.T) {
	for _, s := range suites {
		sealer, opener := pair(t, s)
		for n := range 300 {
			b := make([]byte, n, n+Overhead)
			for i := range b {
				b[i] = byte(n + i)
			}
			want := bytes.Clone(b)
			sealed, err := sealer.Seal(b[:0], b)
			if err != nil || len(sealed) != n+Overhead || n > 0 && &sealed[0] != &b[0] {
				t.Fatalf("%v, %d bytes: %d, %v, want them sealed in place", s, n, len(sealed), err)
			}
			if n > 16 && bytes.Contains(sealed, want) {
				t.Fatalf("%v: what was sealed is in the clear", s)
			}
			got, err := opener.Open(sealed[:0], sealed)
			if err != nil || !bytes.Equal(got, want) || n > 0 && &got[0] != &sealed[0] {
				t.Fatalf("%v, %d bytes: %x, %v, want them opened in place", s, n, got, err)
			}
		}
	}
}

// TestRecordsFlips: one bit of any byte, and a record does not open; nor does anything after it.
func TestRecordsFlips(t *testing.T) {
	for _, s := range suites {
		sealer, _ := pair(t, s)
		sealed := seal(t, sealer, "something to protect")
		flips(sealed, func(at int, b []byte) {
			_, opener := pair(t, s)
			_, err := opener.Open(nil, b)
			wantTampered(t, fmt.Sprintf("byte %d", at), err)
			_, again := opener.Open(nil, sealed)
			if !errors.Is(again, err) {
				t.Errorf("after a failure: %v, want %v", again, err)
			}
			wantTampered(t, "an update after a failure", opener.Update())
		})
		for n := range sealed {
			_, opener := pair(t, s)
			_, err := opener.Open(nil, sealed[:n])
			wantTampered(t, fmt.Sprintf("cut to %d", n), err)
		}
		_, opener := pair(t, s)
		_, err := opener.Open(nil, append(bytes.Clone(sealed), 0))
		wantTampered(t, "a byte too many", err)
	}
}

// TestRecordsOrder: a replayed, omitted or moved record does not open.
func TestRecordsOrder(t *testing.T) {
	for why, order := range map[string][]int{
		"replayed": {0, 0}, "left out": {0, 2}, "the first left out": {1}, "reordered": {1, 0}, "replayed later": {0, 1, 2, 1},
	} {
		sealer, opener := pair(t, AES256GCM)
		var sealed [][]byte
		for i := range 3 {
			sealed = append(sealed, seal(t, sealer, fmt.Sprint(i)))
		}
		var err error
		for i, at := range order {
			_, err = opener.Open(nil, sealed[at])
			if err != nil && i < len(order)-1 && why != "reordered" {
				t.Fatalf("%s: %v too early", why, err)
			}
		}
		wantTampered(t, why, err)
	}
}

// TestRecordsSplice: a record of one connection opens on no other, at the same place.
func TestRecordsSplice(t *testing.T) {
	for _, s := range pskSuites {
		a, b := talk(t, s), talk(t, s)
		_, err := b.server.Open.Open(nil, seal(t, a.client.Seal, "for a"))
		wantTampered(t, "another connection's", err)
		_, err = b.client.Open.Open(nil, seal(t, a.server.Seal, "for a"))
		wantTampered(t, "another connection's", err)
	}
}

func TestKeyUpdate(t *testing.T) {
	for _, s := range suites {
		sealer, opener := pair(t, s)
		for range 3 {
			for range minRecords {
				if _, err := opener.Open(nil, seal(t, sealer, "x")); err != nil {
					t.Fatal(err)
				}
			}
			old := *sealer
			old.secret = bytes.Clone(sealer.secret)
			if err := errors.Join(sealer.Update(), opener.Update()); err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(old.secret, sealer.secret) || old.iv == sealer.iv {
				t.Fatalf("%v: the key is the same", s)
			}
		}
		if _, err := opener.Open(nil, seal(t, sealer, "x")); err != nil {
			t.Fatal(err)
		}
		if err := sealer.Update(); err != nil {
			t.Fatal(err)
		}
		_, err := opener.Open(nil, seal(t, sealer, "x"))
		wantTampered(t, "an update that the other side was not informed of", err)
	}
}

func wantLimit(t *testing.T, why string, err error) {
	t.Helper()
	var limit *LimitError
	if !errors.As(err, &limit) || !errors.Is(err, unix.EOVERFLOW) {
		t.Errorf("%s: %v, want a *LimitError", why, err)
	}
}

// TestKeyUpdateTooOften: a peer that has us make keys all the time is refused.
func TestKeyUpdateTooOften(t *testing.T) {
	sealer, opener := pair(t, AES256GCM)
	for range minRecords - 1 {
		if _, err := opener.Open(nil, seal(t, sealer, "")); err != nil {
			t.Fatal(err)
		}
	}
	wantLimit(t, "one record too early", opener.Update())
	_, err := opener.Open(nil, seal(t, sealer, ""))
	wantLimit(t, "after that", err)
}

// TestKeyLimits: a key that should be changed reports it, and one that was not is not used
// forever, neither by this side nor by the peer.
func TestKeyLimits(t *testing.T) {
	sealer, opener := pair(t, AES256GCM)
	for why, at := range map[string]direction{
		"records": {records: UpdateRecords - 1}, "bytes": {bytes: UpdateBytes - 1},
	} {
		sealer.records, sealer.bytes = at.records, at.bytes
		if sealer.UpdateDue() {
			t.Errorf("%s: due too early", why)
		}
		seal(t, sealer, "x")
		if !sealer.UpdateDue() {
			t.Errorf("%s: not due", why)
		}
	}
	for why, at := range map[string]direction{
		"records": {records: maxRecords - 1}, "bytes": {bytes: maxBytes - 1},
	} {
		sealer.records, sealer.bytes, sealer.failed = at.records, at.bytes, nil
		opener.records, opener.bytes, opener.failed = at.records, at.bytes, nil
		last := seal(t, sealer, "x")
		if _, err := opener.Open(nil, last); err != nil {
			t.Fatalf("%s: the last: %v", why, err)
		}
		_, err := sealer.Seal(nil, []byte("x"))
		wantLimit(t, why+" to seal", err)
		wantLimit(t, why+" to seal, then update", sealer.Update())
		_, err = opener.Open(nil, last)
		wantLimit(t, why+" to open", err)
	}
}

// TestForget: after Forget nothing is left in our memory, and nothing is sealed or opened.
func TestForget(t *testing.T) {
	c := talk(t, AES256GCM)
	b := make([]byte, LargeLen(1))
	c.client.Forget()
	_, err := c.client.Seal.Seal(nil, nil)
	wantConfig(t, "sealed", err)
	_, err = c.client.Open.Open(nil, make([]byte, 64))
	wantConfig(t, "opened", err)
	wantConfig(t, "updated", c.client.Seal.Update())
	_, _, err = c.client.SealLarge.Begin(b, b[:1])
	wantConfig(t, "a large message sealed", err)
	_, err = c.client.OpenLarge.Begin(b, 1, 1)
	wantConfig(t, "a large message opened", err)
	for _, secret := range [][]byte{
		c.client.Seal.secret, c.client.Open.secret, c.client.SealLarge.secret, c.client.OpenLarge.secret,
		c.client.Seal.iv[:], c.client.Open.nonce[:],
	} {
		if !bytes.Equal(secret, make([]byte, len(secret))) {
			t.Errorf("left in memory: %x", secret)
		}
	}
}

// TestRecordsAllocateNothing: neither sealing nor opening does, in place.
func TestRecordsAllocateNothing(t *testing.T) {
	for _, s := range suites {
		sealer, opener := pair(t, s)
		b := make([]byte, 1024, 1024+Overhead)
		if n := testing.AllocsPerRun(1000, func() {
			sealed, err := sealer.Seal(b[:0], b)
			if err != nil {
				t.Fatal(err)
			}
			if b, err = opener.Open(sealed[:0], sealed); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations a record", s, n)
		}
	}
}

// TestPreferredSuite: AES only with instructions for it, and for GCM's multiplication.
func TestPreferredSuite(t *testing.T) {
	if preferredSuite(true) != AES256GCM || preferredSuite(false) != ChaCha20Poly1305 {
		t.Error("the wrong way round")
	}
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return // another system
	}
	words := strings.Fields(string(b))
	has := slices.Contains(words, "aes") && (slices.Contains(words, "pclmulqdq") || slices.Contains(words, "pmull"))
	if got := PreferredSuite(); got != preferredSuite(has) {
		t.Errorf("%v, and the processor has AES: %v", got, has)
	}
}

// TestKeyUpdateCountsAnew: a new key is as good as the first, whatever the old one has sealed and
// opened. If it inherited a count, an update would be due for each record from then on.
func TestKeyUpdateCountsAnew(t *testing.T) {
	for why, at := range map[string]direction{
		"records": {records: UpdateRecords - 1}, "bytes": {records: minRecords, bytes: UpdateBytes - 1},
	} {
		sealer, opener := pair(t, AES256GCM)
		sealer.records, sealer.bytes = at.records, at.bytes
		opener.records, opener.bytes = at.records, at.bytes
		if _, err := opener.Open(nil, seal(t, sealer, "x")); err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		if !sealer.UpdateDue() {
			t.Fatalf("%s: no update is due", why)
		}
		if err := errors.Join(sealer.Update(), opener.Update()); err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		if _, err := opener.Open(nil, seal(t, sealer, "x")); err != nil {
			t.Fatalf("%s: after an update: %v", why, err)
		}
		if sealer.UpdateDue() {
			t.Errorf("%s: the next update is due after one record", why)
		}
		if opener.records != 1 || opener.bytes != 1 {
			t.Errorf("%s: the opener counts %d records of %d bytes, want one of one", why, opener.records, opener.bytes)
		}
	}
}
