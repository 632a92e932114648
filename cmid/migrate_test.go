package cmid

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// nomad is a scripted driver that can migrate.
type nomad struct {
	script
	left, came []Handle
	err        map[Handle]error // of Detach
	full       error            // of Attach, for those that come from another
	// before is reported while Detach runs.
	before func()
}

func (n *nomad) Name() string { return "nomad" }

// wanderer is an identifier of a nomad's.
type wanderer struct {
	*scripted
	n *nomad
}

func (id *wanderer) Detach() (DetachedInstance, error) {
	n := id.n
	if n.before != nil {
		n.before()
	}
	if err := n.err[id.h]; err != nil {
		return nil, err
	}
	n.left = append(n.left, id.h)
	return &tent{n, id}, nil
}

// tent is an identifier of a nomad's on its way.
type tent struct {
	from *nomad
	id   *wanderer
}

func (d *tent) Attach(to Instance) error {
	n, ok := to.(nomads)
	switch {
	case !ok:
		return unix.EINVAL
	case n.full != nil && n.nomad != d.from:
		return n.full
	}
	d.id.s, d.id.n = &n.script, n.nomad
	n.came = append(n.came, d.id.h)
	return nil
}

func (d *tent) Destroy() { d.from.destroyed = append(d.from.destroyed, d.id.h) }

// nomads is the Driver: script.Open would give away the script alone.
type nomads struct{ *nomad }

func openNomad(t *testing.T, n *nomad) *Channel {
	t.Helper()
	c := open(t, &n.script)
	c.inst = nomads{n}
	n.over = func(id *scripted) DriverID { return &wanderer{id, n} }
	return c
}

func TestMigrateTakesEventsAlong(t *testing.T) {
	old, now := &nomad{}, &nomad{}
	from, to := openNomad(t, old), openNomad(t, now)
	stays := create(t, &old.script, from, states.Connected)
	old.device = nil
	id := create(t, &old.script, from, states.Connected)
	user := func(id *ID, arg uint64) {
		old.up.Event(id.Handle(), &DriverEvent{Kind: states.KindUser, Arg: arg})
	}
	user(id, 1)
	user(stays, 2)
	user(id, 3)
	old.before = func() { user(id, 4) } // the driver hands over its last event
	if err := id.Migrate(to); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(old.left, []Handle{id.Handle()}) || !slices.Equal(now.came, old.left) {
		t.Errorf("%v left the old driver, and %v came to the new one", old.left, now.came)
	}
	if from.ID(id.Handle()) != nil || to.ID(id.Handle()) != id || from.Len() != 1 || to.Len() != 1 {
		t.Error("the identifier is not the new channel's alone")
	}
	now.up.Event(id.Handle(), &DriverEvent{Kind: states.KindUser, Arg: 5})
	wantUsers(t, to, id, 1, 3, 4, 5)
	wantUsers(t, from, stays, 2)
	if err := id.Disconnect(); err != nil || len(now.did) != 1 {
		t.Errorf("Disconnect: %v; the new driver was given %d commands, want this one", err, len(now.did))
	}
}

// wantUsers checks that a channel delivers these user events of id, and nothing else.
func wantUsers(t *testing.T, c *Channel, id *ID, args ...uint64) {
	t.Helper()
	for _, want := range args {
		ev, from, err := c.GetEvent()
		if u, ok := ev.(*User); err != nil || from != id || !ok || u.Arg != want {
			t.Errorf("got %v of %v, %v, want user event %d", ev, from, err, want)
		}
	}
	if ev, _, err := c.GetEvent(); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%v was delivered besides", ev)
	}
}

// TestMigrateListener: the identifier of a request that was not fetched moves along, that of a
// fetched request stays.
func TestMigrateListener(t *testing.T) {
	old := &nomad{}
	from, to := openNomad(t, old), openNomad(t, &nomad{})
	l, err := from.CreateID(PortSpaceTCP)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.BindAddr(MustAddr("0.0.0.0:7471")), l.Listen(0)); err != nil {
		t.Fatal(err)
	}
	var children []Handle
	request := func() {
		h := old.up.NewHandle()
		children = append(children, h)
		old.up.Event(l.Handle(), &DriverEvent{Kind: states.KindConnectRequest, Child: old.id(h)})
	}
	request()
	_, fetched, err := from.GetEvent()
	if err != nil {
		t.Fatal(err)
	}
	request()
	request()
	old.err = map[Handle]error{children[2]: unix.ENXIO} // its device has gone
	if err := l.Migrate(to); err != nil {
		t.Fatal(err)
	}
	ev, child, err := to.GetEvent()
	if q, ok := ev.(*ConnectRequest); err != nil || !ok || q.Listener != l.Handle() || child.Handle() != children[1] || to.ID(children[1]) != child {
		t.Errorf("got %+v, %v, want the request that was not fetched, with its identifier", ev, err)
	}
	if ev, _, err := to.GetEvent(); err == nil {
		t.Errorf("got %v: a request whose identifier cannot come is nobody's", ev)
	}
	if len(old.destroyed) != 1 || old.destroyed[0] != children[2] {
		t.Errorf("destroyed %v, want %v", old.destroyed, children[2:])
	}
	if from.ID(fetched.Handle()) != fetched || from.Len() != 1 {
		t.Error("the identifier that was fetched before did not stay")
	}
	if err := fetched.Migrate(to); err != nil || to.Len() != 3 {
		t.Errorf("by itself: %v, %d identifiers", err, to.Len())
	}
}

// TestMigrateListenerWithItsChildrensEvents: the queued events of an identifier that moves along
// come with it, in order, and those of one that cannot are dropped.
func TestMigrateListenerWithItsChildrensEvents(t *testing.T) {
	old, now := &nomad{}, &nomad{}
	from, to := openNomad(t, old), openNomad(t, now)
	stays := create(t, &old.script, from, states.Connected)
	old.device = nil
	l, err := from.CreateID(PortSpaceTCP)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.BindAddr(MustAddr("0.0.0.0:7471")), l.Listen(0)); err != nil {
		t.Fatal(err)
	}
	child, lost := old.up.NewHandle(), old.up.NewHandle()
	old.err = map[Handle]error{lost: unix.ENXIO}
	request := func(h Handle) {
		old.up.Event(l.Handle(), &DriverEvent{Kind: states.KindConnectRequest, Child: old.id(h)})
	}
	user := func(h Handle, arg uint64) { old.up.Event(h, &DriverEvent{Kind: states.KindUser, Arg: arg}) }
	request(child)
	request(lost)
	user(stays.Handle(), 1)
	user(child, 2)
	user(lost, 3)
	user(l.Handle(), 4)
	user(child, 5)
	if err := l.Migrate(to); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, from, stays, 1)
	if ev, id, err := to.GetEvent(); err != nil || id.Handle() != child {
		t.Errorf("got %T of %v, %v, want the request", ev, id, err)
	}
	for _, want := range []struct {
		of  Handle
		arg uint64
	}{{child, 2}, {l.Handle(), 4}, {child, 5}} {
		ev, id, err := to.GetEvent()
		if u, ok := ev.(*User); err != nil || !ok || id.Handle() != want.of || u.Arg != want.arg {
			t.Errorf("got %+v of %v, %v, want user event %d of %d", ev, id, err, want.arg, want.of)
		}
	}
	if ev, _, err := to.GetEvent(); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%v was delivered besides", ev)
	}
}

func TestMigrateRefused(t *testing.T) {
	old := &nomad{}
	from, to := openNomad(t, old), openNomad(t, &nomad{})
	id := create(t, &old.script, from, states.RouteResolved)
	if err := id.Migrate(from); err != nil || len(old.left) != 0 {
		t.Errorf("to where it is: %v, moved %v", err, old.left)
	}
	old.answers[states.OpConnect] = ErrPending
	if err := id.Connect(nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := id.Migrate(to); !errors.Is(err, unix.EBUSY) {
		t.Errorf("while Connect is in progress: %v, want EBUSY", err)
	}
	old.up.Done(id.Handle(), nil)
	old.err = map[Handle]error{id.Handle(): unix.EMFILE}
	if err := id.Migrate(to); !errors.Is(err, unix.EMFILE) || from.ID(id.Handle()) != id {
		t.Errorf("the driver failed: %v, want EMFILE, and the identifier where it was", err)
	}
	old.up.Event(id.Handle(), &DriverEvent{Kind: states.KindDeviceRemoval})
	if err := id.Migrate(to); !errors.Is(err, unix.ENXIO) {
		t.Errorf("without its device: %v, want ENXIO", err)
	}
	if err := id.Destroy(); err != nil {
		t.Fatal(err)
	}
	if err := id.Migrate(to); !errors.Is(err, unix.ENOENT) {
		t.Errorf("destroyed: %v, want ENOENT", err)
	}
}

// TestNotSupported: operations that a device does not offer fail in words, with an errno and with
// the verbs' error.
func TestNotSupported(t *testing.T) {
	s := &script{}
	c, to := open(t, s), open(t, &script{})
	id := create(t, s, c, states.RouteResolved)
	_, _, attr := id.InitQPAttr(verbs.QPInit)
	_, path := id.QueryPath()
	_, _, gid := id.QueryGID()
	for name, err := range map[string]error{"migrate_id": id.Migrate(to), "init_qp_attr": attr, "query_path": path, "query_gid": gid} {
		var f *CommandFailed
		if !errors.As(err, &f) || f.Op != name || !errors.Is(err, unix.EOPNOTSUPP) || !errors.Is(err, verbs.ErrNotSupported) || !errors.Is(err, ErrNotSupported) {
			t.Errorf("%s: %v, want CommandFailed with EOPNOTSUPP", name, err)
		}
	}
}

// requested makes a listener and a request's identifier.
func requested(t *testing.T, n *nomad, c *Channel) (listener, child *ID) {
	t.Helper()
	l, err := c.CreateID(PortSpaceTCP)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.BindAddr(MustAddr("0.0.0.0:7471")), l.Listen(0)); err != nil {
		t.Fatal(err)
	}
	n.up.Event(l.Handle(), &DriverEvent{Kind: states.KindConnectRequest, Child: n.id(n.up.NewHandle())})
	_, child, err = c.GetEvent()
	if err != nil {
		t.Fatal(err)
	}
	return l, child
}

// TestDetachAndAttach: between the halves an identifier is on no channel, and no channel delivers
// its events.
func TestDetachAndAttach(t *testing.T) {
	old, now := &nomad{}, &nomad{}
	from, to := openNomad(t, old), openNomad(t, now)
	_, id := requested(t, old, from)
	old.up.Event(id.Handle(), &DriverEvent{Kind: states.KindUser, Arg: 1}) // not fetched
	d, err := id.Detach()
	if err != nil {
		t.Fatal(err)
	}
	if from.ID(id.Handle()) != nil || to.ID(id.Handle()) != nil || from.Len() != 1 {
		t.Error("it is still on a channel")
	}
	if err := id.Reject(nil); !errors.Is(err, unix.ENOENT) || id.Device() != nil {
		t.Errorf("a command on its way: %v, want ENOENT, and no device", err)
	}
	if _, err := id.Detach(); !errors.Is(err, unix.ENOENT) {
		t.Errorf("detached twice: %v, want ENOENT", err)
	}
	if ev, _, err := from.GetEvent(); err == nil {
		t.Errorf("the old channel delivers %v", ev)
	}
	now.full = unix.ENOMEM
	if err := to.Attach(d); !errors.Is(err, unix.ENOMEM) || to.Len() != 0 {
		t.Errorf("the driver failed: %v, want ENOMEM, and nothing here", err)
	}
	now.full = nil
	if err := to.Attach(d); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, to, id, 1)
	if err := to.Attach(d); !errors.Is(err, unix.EINVAL) {
		t.Errorf("attached twice: %v, want EINVAL", err)
	}
	if err := id.Reject(nil); err != nil || len(now.did) != 1 {
		t.Errorf("Reject: %v; the new driver was given %d commands, want this one", err, len(now.did))
	}
	d.Destroy() // too late
	if len(old.destroyed) != 0 || to.ID(id.Handle()) != id {
		t.Error("an identifier that has arrived was destroyed as if it had not")
	}
}

// TestDestroyDetached: the identifier can no longer be used.
func TestDestroyDetached(t *testing.T) {
	old := &nomad{}
	from, to := openNomad(t, old), openNomad(t, &nomad{})
	_, id := requested(t, old, from)
	d, err := id.Detach()
	if err != nil {
		t.Fatal(err)
	}
	d.Destroy()
	d.Destroy()
	if !slices.Equal(old.destroyed, []Handle{id.Handle()}) {
		t.Errorf("destroyed %v, want %v once", old.destroyed, id.Handle())
	}
	if err := to.Attach(d); !errors.Is(err, unix.EINVAL) {
		t.Errorf("attached: %v, want EINVAL", err)
	}
	if err := id.Accept(nil, nil); !errors.Is(err, unix.ENOENT) {
		t.Errorf("accepted: %v, want ENOENT", err)
	}
}

// TestDetachRefused: what cannot do without its loop stays.
func TestDetachRefused(t *testing.T) {
	old := &nomad{}
	from := openNomad(t, old)
	l, id := requested(t, old, from)
	if _, err := l.Detach(); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a listener: %v, want EINVAL", err)
	}
	old.err = map[Handle]error{id.Handle(): unix.ENXIO}
	if _, err := id.Detach(); !errors.Is(err, unix.ENXIO) || from.ID(id.Handle()) != id {
		t.Errorf("the driver failed: %v, want ENXIO, and the identifier where it was", err)
	}
	old.err = nil
	old.answers[states.OpAccept] = ErrPending
	if err := id.Accept(nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := id.Detach(); !errors.Is(err, unix.EINVAL) {
		t.Errorf("while Accept is in progress: %v, want EINVAL", err)
	}
	if err := id.Destroy(); err != nil {
		t.Fatal(err)
	}
	if _, err := id.Detach(); !errors.Is(err, unix.ENOENT) {
		t.Errorf("destroyed: %v, want ENOENT", err)
	}
}

// TestMigrateToAFullChannel: if the new channel's driver fails, the identifier and its events are
// where they were.
func TestMigrateToAFullChannel(t *testing.T) {
	old, now := &nomad{}, &nomad{}
	from, to := openNomad(t, old), openNomad(t, now)
	_, id := requested(t, old, from)
	old.up.Event(id.Handle(), &DriverEvent{Kind: states.KindUser, Arg: 1})
	now.full = unix.ENOMEM
	var f *CommandFailed
	if err := id.Migrate(to); !errors.Is(err, unix.ENOMEM) || !errors.As(err, &f) || f.Op != "migrate_id" {
		t.Errorf("migrate: %v, want CommandFailed with ENOMEM", err)
	}
	if from.ID(id.Handle()) != id || to.Len() != 0 {
		t.Error("it is not where it was")
	}
	wantUsers(t, from, id, 1)
}

// A listener moves although one of its children, whose request was not fetched, is being destroyed,
// and a command to that one is refused with that reason.
func TestMigrateListenerWhoseChildIsBeingDestroyed(t *testing.T) {
	old, young := &nomad{}, &nomad{}
	from, to := openNomad(t, old), openNomad(t, young)
	l, err := from.CreateID(PortSpaceTCP)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.BindAddr(MustAddr("0.0.0.0:7471")), l.Listen(0)); err != nil {
		t.Fatal(err)
	}
	h := old.up.NewHandle()
	old.up.Event(l.Handle(), &DriverEvent{Kind: states.KindConnectRequest, Child: old.id(h)})
	old.answers = map[states.Op]error{states.OpDestroyID: ErrPending}
	child := from.ID(h)
	_ = child.Destroy()
	want := states.Why(0, states.Destroying, states.Requested(states.OpListen)).Text
	if err := child.Listen(0); !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), want) {
		t.Errorf("listen: %v, want %q", err, want)
	}
	if err := l.Migrate(to); err != nil {
		t.Fatal(err)
	}
}
