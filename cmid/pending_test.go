package cmid

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// prepared asks for a command that prepare precedes. The answers are collected.
func prepared(id *ID, cmd Command, prepare func(*Pending)) *[]Event {
	answers := new([]Event)
	if p, legal := id.Begin(cmd, func(ev Event) { *answers = append(*answers, ev) }); legal {
		prepare(p)
	}
	return answers
}

// waiting returns the command whose answer is to come from the device.
func waiting(id *ID) Command {
	if p := id.commands.waiting(); p != nil {
		return p.Command
	}
	return nil
}

// What cannot be undone is done only for a command that reaches the device.
func TestPrepareFollowsTheVerdict(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	never := func(*Pending) { t.Error("prepared") }
	id := create(t, s, c, states.Idle)
	if a := *prepared(id, &Connect{}, never); len(a) != 1 || !errors.Is(a[0].(Failure), unix.EINVAL) {
		t.Errorf("illegal: %v", a)
	}
	id = create(t, s, c, states.RouteResolved)
	s.answers[states.OpConnect] = ErrPending
	id.Do(&Connect{}, nil)
	if a := *prepared(id, &SetOption{}, never); len(a) != 1 || !errors.Is(a[0].(Failure), unix.EBUSY) {
		t.Errorf("while another command is in progress: %v", a)
	}
}

// The device executes the command that the preparation has made, and the answer names the original
// one.
func TestProceedWithAnotherCommand(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	id := create(t, s, c, states.RouteResolved)
	asked, made := &Connect{}, &Connect{PrivateData: []byte("hello")}
	s.answers[states.OpConnect] = unix.ENOMEM
	a := *prepared(id, asked, func(p *Pending) { p.Proceed(made) })
	if len(a) != 1 || a[0].(Failure).Failed() != Command(asked) || s.did[len(s.did)-1] != Command(made) {
		t.Errorf("the device did %v, the answer is %v", s.did, a)
	}
	if id.State() != states.RouteResolved || len(id.Pending()) != 0 {
		t.Errorf("%v, %d pending", id.State(), len(id.Pending()))
	}
}

// A preparation that fails leaves the device and the state alone.
func TestPreparationFails(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	id := create(t, s, c, states.RouteResolved)
	did := len(s.did)
	a := *prepared(id, &Connect{}, func(p *Pending) { p.Answer(&CommandFailed{}); p.Proceed(p.Command) })
	if len(a) != 1 || len(s.did) != did || id.State() != states.RouteResolved || waiting(id) != nil {
		t.Errorf("%v; the device did %v; %v", a, s.did[did:], id.State())
	}
}

// One event answers every Disconnect, also while the first is being prepared, which then does not
// reach the device.
func TestDisconnectsShareTheirAnswer(t *testing.T) {
	for _, when := range []string{"prepared", "executed", "executed twice"} {
		t.Run(when, func(t *testing.T) {
			s := &script{flavor: states.IWARP}
			c := open(t, s)
			id := create(t, s, c, states.Connected)
			c.sink = func(_ *ID, ev Event, answers *Pending) { answers.Answer(ev) }
			did := len(s.did)
			var first *Pending
			a := prepared(id, &Disconnect{}, func(p *Pending) { first = p })
			if when == "executed twice" {
				first.Proceed(first.Command)
			}
			b := prepared(id, &Disconnect{}, func(p *Pending) { p.Proceed(p.Command) })
			if when == "executed" {
				first.Proceed(first.Command)
			}
			s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindDisconnected})
			first.Proceed(first.Command)
			if len(*a) != 1 || !slices.Equal(*a, *b) || len(id.Pending()) != 0 {
				t.Errorf("answers %v and %v, %d pending", *a, *b, len(id.Pending()))
			}
			if n, want := len(s.did)-did, map[string]int{"executed": 1, "executed twice": 2}[when]; n != want {
				t.Errorf("the device did %d, want %d", n, want)
			}
		})
	}
}

// Disconnects that fail together name each its own command.
func TestDisconnectsFailTogether(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	id := create(t, s, c, states.Connected)
	s.answers[states.OpDisconnect] = unix.EIO
	one, other := &Disconnect{}, &Disconnect{}
	var first *Pending
	a, b := prepared(id, one, func(p *Pending) { first = p }), prepared(id, other, nil)
	first.Proceed(one)
	if len(*a) != 1 || len(*b) != 1 || (*a)[0].(Failure).Failed() != Command(one) || (*b)[0].(Failure).Failed() != Command(other) {
		t.Errorf("%v and %v", *a, *b)
	}
}

// Commands recorded by Expect move to the identifier that replaces another.
func TestInherit(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	old, id := create(t, s, c, states.Connecting), create(t, s, c, states.Idle)
	answered := 0
	p := old.Expect(&GetAddrInfo{}, func(Event) { answered++ })
	id.Inherit(old)
	if len(old.Pending()) != 1 /* its Connect */ || !slices.Equal(id.Pending(), []*Pending{p}) {
		t.Errorf("%d stayed, %d came", len(old.Pending()), len(id.Pending()))
	}
	if !p.Answer(&Done{}) || p.Answer(&Done{}) || answered != 1 || len(id.Pending()) != 0 {
		t.Errorf("answered %d times, %d pending", answered, len(id.Pending()))
	}
}

// A command that was answered is not pending, also while the device has not finished it. Until then
// the device gets no other one.
func TestAnsweredBeforeDone(t *testing.T) {
	for _, when := range []string{"inside Do", "after Do"} {
		t.Run(when, func(t *testing.T) {
			s := &script{flavor: states.IWARP}
			c := open(t, s)
			id := create(t, s, c, states.Connected)
			c.sink = func(_ *ID, ev Event, answers *Pending) { answers.Answer(ev) }
			s.answers[states.OpDisconnect] = ErrPending
			ended := func() { s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindDisconnected}) }
			if when == "inside Do" {
				s.inside = func(Handle, Command) { s.inside = nil; ended() }
			}
			var answer Event
			id.Do(&Disconnect{}, func(ev Event) { answer = ev })
			if when == "after Do" {
				ended()
			}
			if _, ok := answer.(*Disconnected); !ok || len(id.Pending()) != 0 {
				t.Errorf("answered with %v, %d pending", answer, len(id.Pending()))
			}
			if f, ok := atOnce(id, &SetOption{}).(Failure); !ok || !errors.Is(f, unix.EBUSY) {
				t.Errorf("before Done: %v", f)
			}
			s.up.Done(id.Handle(), nil)
			if ev, ok := atOnce(id, &SetOption{}).(*Done); !ok {
				t.Errorf("after Done: %v", ev)
			}
		})
	}
}

// A command is judged again before the device gets it if the identifier changed during the
// preparation.
func TestProceedIsJudged(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	id := create(t, s, c, states.Connected)
	var p *Pending
	a := prepared(id, &Disconnect{}, func(first *Pending) { p = first })
	s.answers[(&SetOption{}).Op()] = ErrPending
	id.Do(&SetOption{}, nil)
	did := len(s.did)
	p.Proceed(p.Command)
	if len(*a) != 1 || !errors.Is((*a)[0].(Failure), unix.EBUSY) || len(s.did) != did {
		t.Errorf("while another command is in progress: %v; the device did %v", *a, s.did[did:])
	}
	s.up.Done(id.Handle(), nil)
	removed := create(t, s, c, states.RouteResolved)
	a = prepared(removed, &Connect{}, func(first *Pending) { p = first })
	s.up.Event(removed.Handle(), &DriverEvent{Kind: states.KindDeviceRemoval})
	did = len(s.did)
	p.Proceed(p.Command)
	if len(*a) != 1 || !errors.Is((*a)[0].(Failure), unix.ENXIO) || len(s.did) != did {
		t.Errorf("after the device was removed: %v; the device did %v", *a, s.did[did:])
	}
	a = prepared(id, &Disconnect{}, func(first *Pending) { p = first })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	p.Proceed(p.Command)
	if len(*a) != 1 || !errors.Is((*a)[0].(Failure), unix.ENOENT) {
		t.Errorf("on a closed channel: %v", *a)
	}
}

// A command of the device's stays with its identifier, also if its answer was not delivered yet.
func TestInheritLeavesTheDevicesCommands(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	old, id := create(t, s, c, states.RouteResolved), create(t, s, c, states.Idle)
	s.answers[(&SetOption{}).Op()] = ErrPending
	old.Do(&SetOption{}, nil)
	s.up.Done(old.Handle(), nil)
	id.Inherit(old)
	if len(old.Pending()) != 1 || len(id.Pending()) != 0 {
		t.Errorf("%d stayed, %d went along", len(old.Pending()), len(id.Pending()))
	}
}
