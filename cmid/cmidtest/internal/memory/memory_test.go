package memory

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const all = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic

// device makes a device whose counts are kept.
func device(cfg Config) (*Device, map[string]int) {
	counts := map[string]int{}
	cfg.Full = func(string) error { return nil }
	cfg.Count = func(what string, n int) { counts[what] += n }
	return NewDevice(cfg), counts
}

func alloc(t *testing.T, pd verbs.PD, n int, access verbs.Access) *verbs.MR {
	t.Helper()
	mr, err := pd.Alloc(n, access)
	if err != nil {
		t.Fatal(err)
	}
	return mr
}

func newDomain(t *testing.T, d *Device) *Domain {
	t.Helper()
	pd, err := d.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	return pd.(*Domain)
}

// TestReachIsExact: a peer can access exactly the bytes of a region, with exactly its rights, and
// only through a queue pair of the region's domain.
func TestReachIsExact(t *testing.T) {
	d, _ := device(Config{Atomics: true, Salt: 3})
	domains := []*Domain{newDomain(t, d), newDomain(t, d)}
	accesses := []verbs.Access{verbs.RemoteWrite, verbs.RemoteRead, verbs.RemoteAtomic}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		size := 1 + rng.IntN(8)
		rights := verbs.LocalWrite
		for _, a := range accesses {
			if rng.IntN(2) == 0 {
				rights |= a
			}
		}
		mr := alloc(t, domains[rng.IntN(2)], size, rights)
		through, asked := domains[rng.IntN(2)], accesses[rng.IntN(3)]
		off, n := rng.IntN(12)-2, 1+rng.IntN(10)
		b, err := through.Reach(Remote{Addr: mr.Addr + uint64(off), Key: mr.RKey, Len: uint32(n)}, asked)
		may := through == mr.PD && rights&asked != 0 && off >= 0 && off+n <= size
		if (err == nil) != may {
			t.Fatalf("%d bytes at %d of %d, asked %v of %v: %v, want allowed %v", n, off, size, asked, rights, err, may)
		}
		if may && (len(b) != n || &b[0] != &mr.Bytes[off]) {
			t.Fatalf("%d bytes at %d: reached others", n, off)
		}
	}
	if b, err := domains[0].Reach(Remote{Key: 12345}, verbs.RemoteRead); b != nil || err != nil {
		t.Errorf("no bytes with a key that is none: %v, %v, want nothing looked up", b, err)
	}
}

// TestKeys: two devices never have the same key, no two keys are adjacent, and a key that was just
// freed is not used next.
func TestKeys(t *testing.T) {
	d, _ := device(Config{Salt: 3})
	other, _ := device(Config{Salt: 5})
	taken := map[uint32]bool{}
	for range 100 {
		for _, pd := range []verbs.PD{d.PD(), other.PD()} {
			mr := alloc(t, pd, 1, verbs.LocalWrite)
			if taken[mr.RKey] || taken[mr.RKey-1] || taken[mr.RKey+1] {
				t.Fatalf("the key %#x is another's, or its neighbour", mr.RKey)
			}
			taken[mr.RKey] = true
		}
	}
	mr := alloc(t, d.PD(), 1, verbs.LocalWrite)
	key := mr.RKey
	if err := d.Free(mr); err != nil {
		t.Fatal(err)
	}
	if next := alloc(t, d.PD(), 1, verbs.LocalWrite); next.RKey == key {
		t.Errorf("the key %#x is in use again at once", key)
	}
}

// TestInvalidate: an invalidated key gives no access, and only memory that is open to peers has a
// key to invalidate.
func TestInvalidate(t *testing.T) {
	d, _ := device(Config{Salt: 3})
	p, _ := d.Domain(nil)
	open, closed := alloc(t, p, 4, verbs.RemoteRead), alloc(t, p, 4, verbs.LocalWrite)
	at := Remote{Addr: open.Addr, Key: open.RKey, Len: 4}
	if _, err := p.Reach(at, verbs.RemoteRead); err != nil {
		t.Fatal(err)
	}
	if err := newDomain(t, d).Invalidate(open.RKey); err == nil {
		t.Error("a key was invalidated through another domain")
	}
	if err := p.Invalidate(open.RKey); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reach(at, verbs.RemoteRead); err == nil {
		t.Error("an invalidated key reaches memory")
	}
	if p.Invalidate(open.RKey) == nil || p.Invalidate(closed.RKey) == nil || p.Invalidate(1) == nil {
		t.Error("invalidated: a key twice, one closed to peers, or one that is none")
	}
}

// TestHolds: the memory that may be posted on a queue pair of a domain.
func TestHolds(t *testing.T) {
	for _, shares := range []bool{false, true} {
		d, _ := device(Config{Shares: shares, Salt: 3})
		own, _ := d.Domain(nil)
		p, q := newDomain(t, d), newDomain(t, d)
		mine, theirs, devices := alloc(t, p, 8, verbs.LocalWrite), alloc(t, q, 8, verbs.LocalWrite), alloc(t, own, 8, verbs.RemoteRead)
		for _, c := range []struct {
			what   string
			sge    verbs.SGE
			access verbs.Access
			want   bool
		}{
			{"nothing", verbs.SGE{}, verbs.LocalWrite, true},
			{"bytes of no memory", verbs.SGE{Length: 1}, 0, false},
			{"all of a region", verbs.SGE{MR: mine, Length: 8}, verbs.LocalWrite, true},
			{"its end", verbs.SGE{MR: mine, Offset: 8}, verbs.LocalWrite, true},
			{"beyond its end", verbs.SGE{MR: mine, Offset: 1, Length: 8}, verbs.LocalWrite, false},
			{"beyond 32 bits", verbs.SGE{MR: mine, Offset: 1<<32 - 1, Length: 1<<32 - 1}, 0, false},
			{"another domain's", verbs.SGE{MR: theirs, Length: 8}, verbs.LocalWrite, false},
			{"the device's", verbs.SGE{MR: devices, Length: 8}, 0, shares},
			{"the device's, to be written", verbs.SGE{MR: devices, Length: 8}, verbs.LocalWrite, false},
		} {
			if got := p.Holds(c.sge, c.access); got != c.want {
				t.Errorf("shares %v: %s: %v, want %v", shares, c.what, got, c.want)
			}
		}
		if p.Serves(own) != shares || p.Serves(q) || !p.Serves(p) {
			t.Errorf("shares %v: a domain serves the device's %v, another's %v, its own %v", shares, p.Serves(own), p.Serves(q), p.Serves(p))
		}
		sge := verbs.SGE{MR: mine, Offset: 2, Length: 3}
		copy(mine.Bytes, "abcdefgh")
		if got := Bytes(sge); !bytes.Equal(got, []byte("cde")) || Bytes(verbs.SGE{}) != nil {
			t.Errorf("the bytes of an element: %q", got)
		}
		if err := d.Free(mine); err != nil || p.Holds(sge, 0) {
			t.Errorf("freed memory: %v, and a domain holds it: %v", err, p.Holds(sge, 0))
		}
	}
}

// TestLives: an object is counted until it is freed, and cannot be freed twice.
func TestLives(t *testing.T) {
	d, counts := device(Config{Salt: 3})
	other, _ := device(Config{Salt: 5})
	p := newDomain(t, d)
	mr := alloc(t, p, 1, verbs.LocalWrite)
	if counts[CountRegions] != 1 || counts[CountDomains] != 1 {
		t.Errorf("counted %v, want one region and one domain", counts)
	}
	if _, err := p.Alloc(1, all); !errors.Is(err, verbs.ErrNotSupported) {
		t.Errorf("memory for atomics where there are none: %v", err)
	}
	for _, access := range []verbs.Access{verbs.RemoteWrite, 1 << 7} {
		if _, err := p.Alloc(1, access); !errors.Is(err, unix.EINVAL) {
			t.Errorf("memory with the rights %v: %v, want EINVAL", access, err)
		}
	}
	if err := p.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("closed a domain that is in use: %v, want EBUSY", err)
	}
	if err := other.Free(mr); !errors.Is(err, unix.EINVAL) {
		t.Errorf("freed on another device: %v, want EINVAL", err)
	}
	if err := d.Free(mr); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if d.Free(mr) == nil || p.Close() == nil || d.PD().Close() == nil {
		t.Error("given back: a region twice, a domain twice, or the device's own domain")
	}
	if _, err := d.Domain(p); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a closed domain: %v, want EINVAL", err)
	}
	if _, err := p.Alloc(1, verbs.LocalWrite); !errors.Is(err, unix.EINVAL) {
		t.Errorf("memory in a closed domain: %v, want EINVAL", err)
	}
	if counts[CountRegions] != 0 || counts[CountDomains] != 0 {
		t.Errorf("counted %v, want nothing left", counts)
	}
}
