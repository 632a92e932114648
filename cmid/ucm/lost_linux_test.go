package ucm

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// deny makes the kernel refuse all later commands c or, with 0, any.
func (b *bench) deny(c uabi.Command) {
	b.k.answer = func(w wrote, _ []byte) error {
		if c == 0 || w.cmd == c {
			return &verbs.CredentialsError{File: "rdma_cm", Err: unix.EACCES}
		}
		return nil
	}
}

func (b *bench) isClosed() bool {
	b.k.mu.Lock()
	defer b.k.mu.Unlock()
	return b.k.closed
}

// TestCredentials: when the kernel refuses commands, the channel's file is closed, all owners are
// notified of the reason, and nothing else is tried. Identifiers that are destroyed then are freed
// with the file.
func TestCredentials(t *testing.T) {
	b := newBench(t)
	one, other := b.create(), b.create()
	other.listening, b.in.listeners = true, 1
	b.deny(0)
	var c *verbs.CredentialsError
	if err := one.Do(&cmid.ResolveRoute{}); !errors.As(err, &c) || !errors.Is(err, unix.EACCES) {
		t.Errorf("%v: want a CredentialsError, which is EACCES", err)
	}
	if len(b.up.events) != 0 {
		t.Errorf("got %+v in the middle of a command", b.up.events)
	}
	if err := b.loop.Turn(); err != nil {
		t.Fatal(err)
	}
	if len(b.up.events) != 2 {
		t.Errorf("got %+v, want both identifiers", b.up.events)
	}
	for _, e := range b.up.events {
		if e.ev.Kind != states.KindDeviceRemoval || !errors.As(e.ev.Err, &c) {
			t.Errorf("got %+v, want a removal with the reason", e)
		}
	}
	tried := len(b.k.did())
	if _, err := b.in.CreateID(b.up.NewHandle(), cmid.PortSpaceTCP, cmid.QPTypeRC); !errors.As(err, &c) {
		t.Errorf("create_id: %v", err)
	}
	if err := one.Do(&cmid.BindAddr{Addr: cmid.MustAddr("10.0.0.1:0")}); !errors.As(err, &c) {
		t.Errorf("bind_addr: %v", err)
	}
	for n, id := range []*driverID{one, other} {
		if err := id.Do(&cmid.DestroyID{}); err != nil && !errors.Is(err, cmid.ErrPending) {
			t.Errorf("destroy_id: %v", err)
		} else if err != nil {
			b.until("its end", func() bool { return len(b.up.done) == n+1 })
		}
		if !b.isClosed() {
			t.Error("destroyed, and the kernel has it still")
		}
	}
	if n := len(b.k.did()); n != tried {
		t.Errorf("%v was tried on a file that is closed", b.k.did()[tried:])
	}
}

// TestDeniedDestroy: a DestroyID that the kernel refuses has succeeded when the file is closed and
// no longer in use.
func TestDeniedDestroy(t *testing.T) {
	for _, phase := range []phase{unconnected, connected} { // on the loop, and off it
		b := newBench(t)
		id, connecting := b.create(), b.create().on(true)
		id.phase = phase
		release := b.hold(uabi.CommandConnect)
		if err := b.connect(connecting); !errors.Is(err, cmid.ErrPending) {
			t.Fatal(err)
		}
		b.reaches(uabi.CommandConnect, 1)
		b.deny(uabi.CommandDestroyID)
		if err := id.Do(&cmid.DestroyID{}); !errors.Is(err, cmid.ErrPending) {
			t.Errorf("destroy_id: %v, want ErrPending", err)
		}
		b.until("the file's end", func() bool { return b.in.lost != nil && b.in.lost.closed })
		if len(b.up.done) != 0 {
			t.Errorf("done %+v: a connect uses the file", b.up.done)
		}
		close(release)
		b.until("both answers", func() bool { return len(b.up.done) == 2 })
		if d := b.up.done[1]; d.h != id.h || d.err != nil {
			t.Errorf("done %+v, want the destruction last, and done", b.up.done)
		}
	}
}

// TestRefusedDestroy: an identifier that the kernel refuses to destroy is named. A missing
// identifier is no refusal.
func TestRefusedDestroy(t *testing.T) {
	for _, phase := range []phase{unconnected, connected} {
		for errno, want := range map[unix.Errno]bool{unix.ENOENT: false, unix.EINVAL: true} {
			b := newBench(t)
			id := b.create()
			id.phase = phase
			b.k.answer = func(w wrote, _ []byte) error {
				if w.cmd == uabi.CommandDestroyID {
					return errno
				}
				return nil
			}
			err := id.Do(&cmid.DestroyID{})
			if errors.Is(err, cmid.ErrPending) {
				b.until("the answer", func() bool { return len(b.up.done) == 1 })
				err = b.up.done[0].err
			}
			var held *HeldError
			if got := errors.As(err, &held); got != want || got && (held.IDs[0].Handle != id.h || !errors.Is(err, errno)) {
				t.Errorf("%v: %v, want a HeldError: %v", errno, err, want)
			}
			b.k.answer = nil
		}
	}
}

// TestPrivilegedPort: EACCES can also be the error of a privileged port. It ends nothing.
func TestPrivilegedPort(t *testing.T) {
	b := newBench(t)
	id := b.create()
	b.k.answer = func(w wrote, _ []byte) error {
		if w.cmd == uabi.CommandBind {
			return unix.EACCES
		}
		return nil
	}
	err := id.Do(&cmid.BindAddr{Addr: cmid.MustAddr("10.0.0.1:80")})
	var c *verbs.CredentialsError
	if !errors.Is(err, unix.EACCES) || errors.As(err, &c) || b.in.lost != nil {
		t.Errorf("%v: want EACCES and nothing else", err)
	}
}
