package ucm

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

var seven = deviceIdent{7, noIndex}

// meets returns the device of an identifier.
func (b *bench) meets(ident deviceIdent) *device {
	b.Helper()
	d, err := b.in.findOrOpen(ident)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// unlucky is a provider whose devices cannot be opened.
type unlucky struct {
	err   error
	asked int
}

func (p *unlucky) Open(*eventloop.Loop, verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	p.asked++
	return nil, p.err
}

// TestOpenIsTriedAgain: a missing data path is permanent; a failed open may pass.
func TestOpenIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		err   error
		asked int
	}{
		{fmt.Errorf("an adapter: %w", verbs.ErrNotSupported), 1},
		{unix.EMFILE, 2},
		{errors.Join(unix.EACCES, verbs.ErrNotSupported), 2},
	} {
		p := &unlucky{err: c.err}
		b := newBench(t, Config{Provider: p})
		d := b.meets(seven)
		b.meets(seven)
		if p.asked != c.asked {
			t.Errorf("%v: asked %d times to open it, want %d", c.err, p.asked, c.asked)
		}
		if _, err := d.createQP(verbs.RC, verbs.QPInitAttr{}); !errors.Is(err, c.err) || !errors.Is(err, verbs.ErrNotSupported) {
			t.Errorf("%v: a queue pair: %v, want that and ErrNotSupported", c.err, err)
		}
	}
}

// TestDropForgetsBare: when a device goes, the next one under its GUID is asked anew.
func TestDropForgetsBare(t *testing.T) {
	p := &unlucky{err: unix.EMFILE}
	b := newBench(t, Config{Provider: p})
	earlier := b.meets(seven)
	p.err = verbs.ErrNotSupported
	b.meets(seven)
	b.in.removeDevice(earlier)
	b.meets(seven)
	if p.asked != 3 {
		t.Errorf("asked %d times, want 3: the device has gone in between", p.asked)
	}
}

// TestUnreachableMayWait: after an Unreachable the kernel may still have something to wait for, as
// after a neighbour's change; after a refusal it has not.
func TestUnreachableMayWait(t *testing.T) {
	for event, want := range map[uint32]error{
		uabi.EventUnreachable: cmid.ErrPending, uabi.EventRejected: nil, uabi.EventConnectError: nil,
	} {
		b := newBench(t)
		id := b.create().on(false)
		id.phase = half
		b.happens(id.h, id.kid, event)
		if err := id.Do(&cmid.DestroyID{}); !errors.Is(err, want) {
			t.Errorf("destroyed after event %d: %v, want %v", event, err, want)
		}
	}
}

// TestMigrateToAndFro: the channels that requests may have stayed on are remembered once each, and
// not beyond their end.
func TestMigrateToAndFro(t *testing.T) {
	one, two := newBench(t), newBench(t)
	two.in.drv = one.in.drv
	id := one.create()
	for range 3 {
		for _, to := range []*instance{two.in, one.in} {
			if err := one.migrate(id, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(id.past, []*uabi.File{two.in.file}) {
		t.Errorf("%d channels are remembered, want the other one", len(id.past))
	}
	asked := len(one.k.did())
	if err := two.in.Close(); err != nil {
		t.Fatal(err)
	}
	if (&driverID{in: one.in, kid: 9}).migrateHere(id); len(one.k.did()) != asked {
		t.Error("a request is looked for on a channel that was closed: its descriptor's number is another file's")
	}
}

// TestLeaveByValue: an InfiniBand address that was made anew leaves the group that was joined with
// an equal one.
func TestLeaveByValue(t *testing.T) {
	b := newBench(t)
	id := b.create()
	group := func(sid uint64) cmid.Addr { return cmid.Addr{IB: &cmid.SockaddrIB{PKey: 1, SID: sid}} }
	if err := id.Do(&cmid.JoinMulticast{Addr: group(1)}); err != nil {
		t.Fatal(err)
	}
	if err := id.Do(&cmid.LeaveMulticast{Addr: group(2)}); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("leaving another group: %v, want EADDRNOTAVAIL", err)
	}
	if err := id.Do(&cmid.LeaveMulticast{Addr: group(1)}); err != nil {
		t.Errorf("leaving: %v", err)
	}
}

// TestMaxConnects: the number of threads is bounded.
func TestMaxConnects(t *testing.T) {
	for ask, want := range map[int]int{-1: maxConnects, 0: maxConnects, 1: 1, 5: 5, maxConnects + 1: maxConnects} {
		if got := New(Config{MaxConnects: ask}).connects; got != want {
			t.Errorf("MaxConnects of %d is %d, want %d", ask, got, want)
		}
	}
}
