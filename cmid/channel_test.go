package cmid

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

var update = flag.Bool("update", false, "regenerate docs/errors.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a driver whose every answer a test decides. Real devices are compared with the kernel's
// behaviour by conformance; this one is for what devices do rarely: fail, take long, report too
// much.
type script struct {
	flavor    states.Flavor
	up        Upcalls
	answers   map[states.Op]error // what Do returns
	did       []Command
	destroyed []Handle
	info      Info
	device    verbs.Device
	createErr error
	made      []kind                   // arguments of CreateID
	inside    func(Handle, Command)    // called while Do runs
	over      func(*scripted) DriverID // adds optional interfaces to its identifiers; nil: none
}

// scripted is an identifier of a script's.
type scripted struct {
	s *script
	h Handle
}

type kind struct {
	ps PortSpace
	t  QPType
}

func (s *script) Name() string { return "script" }

func (s *script) Open(_ *eventloop.Loop, up Upcalls) (Instance, error) {
	s.up = up
	return s, nil
}

func (s *script) CreateID(h Handle, ps PortSpace, t QPType) (DriverID, error) {
	s.made = append(s.made, kind{ps, t})
	return s.id(h), s.createErr
}

// id returns an identifier that was created, or the child that a request brings.
func (s *script) id(h Handle) DriverID {
	id := &scripted{s, h}
	if s.over != nil {
		return s.over(id)
	}
	return id
}

func (s *script) Devices() []verbs.Device { return nil }
func (s *script) Close() error            { return nil }

func (id *scripted) Handle() Handle        { return id.h }
func (id *scripted) Flavor() states.Flavor { return id.s.flavor }
func (id *scripted) Limits() Limits        { return Limits{MaxBacklog: 1024, MaxMessage: 1 << 20} }
func (id *scripted) Info() Info            { return id.s.info }
func (id *scripted) Device() verbs.Device  { return id.s.device }

func (id *scripted) CreateQP(verbs.QPInitAttr) (verbs.QP, error) { return nil, unix.ENODEV }

func (id *scripted) Do(cmd Command) error {
	s := id.s
	s.did = append(s.did, cmd)
	if s.inside != nil {
		s.inside(id.h, cmd)
	}
	if _, ok := cmd.(*DestroyID); ok {
		s.destroyed = append(s.destroyed, id.h)
	}
	return s.answers[cmd.Op()]
}

// dev stands for an attached device; nothing calls it.
type dev struct{ verbs.Device }

func open(t *testing.T, s *script) *Channel {
	t.Helper()
	if s.answers == nil {
		s.answers = make(map[states.Op]error)
	}
	c, err := OpenChannel(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// atOnce returns the answer to cmd if it is given inside Do.
func atOnce(id *ID, cmd Command) (answer Event) {
	if id.Do(cmd, func(ev Event) { answer = ev }) != nil {
		return nil
	}
	return answer
}

// create makes an identifier and brings it to RouteResolved, or less.
func create(t *testing.T, s *script, c *Channel, to states.State) *ID {
	t.Helper()
	id, err := c.CreateID(PortSpaceTCP)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		state states.State
		do    func() error
	}{
		{states.AddrQuery, func() error { return id.ResolveAddr(Addr{}, MustAddr("10.0.0.7:7471"), 0) }},
		{states.AddrResolved, func() error {
			s.device = dev{}
			s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindAddrResolved})
			return nil
		}},
		{states.RouteQuery, func() error { return id.ResolveRoute(0) }},
		{states.RouteResolved, func() error {
			s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindRouteResolved})
			return nil
		}},
		{states.Connecting, func() error { return id.Connect(nil, nil) }},
		{states.Connected, func() error {
			s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindEstablished})
			return nil
		}},
	}
	for _, step := range steps {
		if id.State() == to {
			break
		}
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if id.State() != step.state {
			t.Fatalf("state %v, want %v", id.State(), step.state)
		}
	}
	for _, q := range c.queue {
		q.answers.Answer(q.ev)
	}
	c.queue = nil
	return id
}

func TestHandlesAreNeverReused(t *testing.T) {
	s := &script{}
	c, d := open(t, s), open(t, &script{})
	seen := make(map[Handle]bool)
	for range 100 {
		for _, ch := range []*Channel{c, d} {
			id, err := ch.CreateID(PortSpaceTCP)
			if err != nil {
				t.Fatal(err)
			}
			if seen[id.Handle()] || id.Handle() == 0 {
				t.Fatalf("handle %d came twice, or is none", id.Handle())
			}
			seen[id.Handle()] = true
			if err := id.Destroy(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAnswerComesLater(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	id := create(t, s, c, states.RouteResolved)
	s.answers[states.OpConnect] = ErrPending

	if err := id.Connect(nil, nil); err != nil {
		t.Fatalf("a pending command has not failed: %v", err)
	}
	if err := id.Disconnect(); err == nil {
		t.Error("a second command went through while one was in progress")
	}
	s.up.Done(id.Handle(), unix.ECONNREFUSED)
	ev, from, err := c.GetEvent()
	if err != nil || from != id {
		t.Fatalf("GetEvent = %v, %v, %v", ev, from, err)
	}
	f, ok := ev.(*CommandFailed)
	if !ok || !errors.Is(f, unix.ECONNREFUSED) {
		t.Fatalf("got %v, want CommandFailed with ECONNREFUSED", ev)
	}
	if id.State() != states.RouteResolved {
		t.Errorf("state %v: rdma_connect(3) that fails at once leaves the identifier where it was", id.State())
	}
	if _, _, err := c.GetEvent(); err != unix.EAGAIN { //nolint:errorlint // exactly EAGAIN is promised
		t.Errorf("GetEvent on an empty channel: %v, want EAGAIN", err)
	}
}

func TestEventOvertakesTheAnswer(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	id := create(t, s, c, states.RouteResolved)
	s.answers[states.OpConnect] = ErrPending
	if err := id.Connect(nil, nil); err != nil {
		t.Fatal(err)
	}
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindEstablished})
	s.up.Done(id.Handle(), nil)
	ev, _, _ := c.GetEvent()
	if _, ok := ev.(*Established); !ok {
		t.Fatalf("got %T, want Established", ev)
	}
	if ev, _, err := c.GetEvent(); err == nil {
		t.Errorf("a second answer: %v", ev)
	}
	if id.State() != states.Connected {
		t.Errorf("state %v", id.State())
	}
}

func TestEventFromInsideIsTheAnswer(t *testing.T) {
	s := &script{flavor: states.IWARP}
	c := open(t, s)
	id := create(t, s, c, states.Connected)
	s.inside = func(h Handle, cmd Command) {
		s.up.Event(h, &DriverEvent{Kind: states.KindDisconnected})
	}
	if ans := atOnce(id, &Disconnect{}); ans != nil {
		t.Errorf("a second answer: %v", ans)
	}
	if ev, _, _ := c.GetEvent(); ev == nil || ev.Kind() != states.KindDisconnected {
		t.Errorf("got %v, want Disconnected", ev)
	}
}

func TestRequestThatNobodyListensFor(t *testing.T) {
	s := &script{}
	c := open(t, s)
	id := create(t, s, c, states.Idle)
	child := s.up.NewHandle()
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindConnectRequest, Child: s.id(child)})
	if len(s.destroyed) != 1 || s.destroyed[0] != child {
		t.Errorf("destroyed %v: a child that is not delivered must be destroyed, or its peer waits for ever", s.destroyed)
	}
}

// Commands are compared by their pointers.
func TestCommandsAreDistinct(t *testing.T) {
	var all []Command
	for range 8 {
		all = append(all, &Disconnect{}, &DestroyID{}, &Establish{})
	}
	for i, a := range all {
		for _, b := range all[:i] {
			if a == b {
				t.Fatalf("two of %T are one", a)
			}
		}
	}
}

func TestNothingAfterDestroy(t *testing.T) {
	s := &script{}
	c := open(t, s)
	id := create(t, s, c, states.Connected)
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindDisconnected})
	if err := id.Destroy(); err != nil {
		t.Fatal(err)
	}
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindTimewaitExit})
	if ev, _, err := c.GetEvent(); err == nil {
		t.Errorf("%T was delivered after rdma_destroy_id(3)", ev)
	}
	if err := id.BindAddr(MustAddr("0.0.0.0:0")); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a destroyed identifier answers %v, want ENOENT", err)
	}
	if c.Len() != 0 {
		t.Errorf("%d identifiers left", c.Len())
	}
}

// TestDestroyIsRefused: an identifier that the device fails to destroy is gone nevertheless, and
// its owner gets the error.
func TestDestroyIsRefused(t *testing.T) {
	s := &script{}
	c := open(t, s)
	id := create(t, s, c, states.Connected)
	s.answers[states.OpDestroyID] = unix.EINVAL
	if err := id.Destroy(); !errors.Is(err, unix.EINVAL) || c.Len() != 0 {
		t.Errorf("%v, and %d identifiers; want EINVAL and none", err, c.Len())
	}
	id = create(t, s, c, states.Connected)
	s.answers[states.OpDestroyID] = ErrPending
	if ev := atOnce(id, &DestroyID{}); ev != nil {
		t.Errorf("answered %v", ev)
	}
	s.up.Done(id.Handle(), unix.EINVAL)
	ev, _, _ := c.GetEvent()
	if closed, ok := ev.(*Closed); !ok || !errors.Is(closed.Err, unix.EINVAL) || c.Len() != 0 {
		t.Errorf("got %v, and %d identifiers; want Closed with EINVAL, and none", ev, c.Len())
	}
}

func TestRequestForADestroyedListener(t *testing.T) {
	s := &script{}
	c := open(t, s)
	id, _ := c.CreateID(PortSpaceTCP)
	if err := id.BindAddr(MustAddr("0.0.0.0:7471")); err != nil {
		t.Fatal(err)
	}
	if err := id.Listen(0); err != nil {
		t.Fatal(err)
	}
	if err := id.Destroy(); err != nil {
		t.Fatal(err)
	}
	child := s.up.NewHandle()
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindConnectRequest, Child: s.id(child)})
	if len(s.destroyed) != 2 || s.destroyed[1] != child {
		t.Errorf("destroyed %v: the child of a dead listener must be destroyed, or its peer waits for ever", s.destroyed)
	}
}

// TestListenFailed: the failure of a listener is delivered while it listens, and not afterwards.
func TestListenFailed(t *testing.T) {
	for _, in := range []states.State{states.Listening, states.Idle} {
		s := &script{}
		c := open(t, s)
		id, err := c.CreateID(PortSpaceTCP)
		if err != nil {
			t.Fatal(err)
		}
		id.enterState(in)
		var delivered []Event
		c.sink = func(_ *ID, ev Event, _ *Pending) { delivered = append(delivered, ev) }
		s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindListenFailed, Err: unix.EINVAL})
		if got := len(delivered); got != 0 != (in == states.Listening) {
			t.Errorf("in state %v: %v", in, delivered)
		}
	}
}

func TestUnknownAndUnsolicitedEventsAreTolerated(t *testing.T) {
	s := &script{}
	c := open(t, s)
	id := create(t, s, c, states.AddrResolved)
	for k := range 256 {
		switch states.Kind(k) {
		case states.KindDeviceRemoval, states.KindAddrChange, states.KindUnreachable:
			continue // these may come at any time
		}
		s.up.Event(id.Handle(), &DriverEvent{Kind: states.Kind(k), Status: 1, Child: s.id(s.up.NewHandle())})
	}
	if id.State() != states.AddrResolved {
		t.Errorf("state %v: nobody asked for any of that", id.State())
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s := &script{}
	c := open(t, s)
	id := create(t, s, c, states.Idle)
	for range 20 {
		if err := id.ResolveAddr(Addr{}, MustAddr("10.0.0.7:7471"), 0); err != nil {
			t.Fatal(err)
		}
		s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindAddrError, Status: -110})
	}
	h := id.History()
	if len(h) != historyLen || h[len(h)-1].State != states.Bound || h[len(h)-2].State != states.AddrQuery {
		t.Errorf("history %v", h)
	}
}

// TestErrorsDocument renders every kind of failure and compares docs/errors.md with it.
func TestErrorsDocument(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`# Errors

Written by ` + "`go test ./cmid -run ErrorsDocument -update`" + `; do not edit.

Every error names the failed call, the known addresses, the state, and the cause. If they apply, it also has the remedy, the
legal commands, and the history: the identifier's last states, each with the time from the identifier's creation until it was
entered. This page shortens the history. ` + "`errors.Is`" + ` finds the errno. ` + "`rdma.Brief`" + ` returns only the call, the place and the cause.
`)
	add := func(title string, err error) {
		if err == nil {
			t.Fatalf("%s: no error", title)
		}
		text := normal(err.Error())
		if strings.Contains(doc.String(), "history: idle") {
			text = wayToConnecting.ReplaceAllString(text, "history: ..., ")
		}
		fmt.Fprintf(&doc, "\n## %s\n\n    %s\n", title, text)
	}
	synctest.Test(t, func(t *testing.T) { // the texts have times
		for _, e := range errorCases(t) {
			add(e.title, e.err)
		}
	})
	const file = "../docs/errors.md"
	if *update {
		if err := os.WriteFile(file, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != doc.String() {
		t.Errorf("%s is stale: go test ./cmid -run ErrorsDocument -update", file)
	}
}

// wayToConnecting matches the beginning of a history that docs/errors.md shortens.
var wayToConnecting = regexp.MustCompile(`history: idle at 0s, addr-query at 0s, (addr-resolved at 0s, route-query at 0s, route-resolved at 0s, )?`)

// normal makes an error text the same in every run: handles are numbered over the whole process.
func normal(s string) string {
	fields := strings.Fields(s)
	for i, f := range fields {
		if f == "(id" {
			fields[i+1] = "3,"
		}
	}
	return strings.Join(fields, " ")
}

// age makes id older.
func age(id *ID, d time.Duration) { id.born = id.born.Add(-d) }

type errorCase struct {
	title string
	err   error
}

func errorCases(t *testing.T) []errorCase {
	s := &script{}
	c := open(t, s)
	var all []errorCase
	add := func(title string, err error) { all = append(all, errorCase{title, err}) }
	inState := func(state states.State) *ID {
		s.device, s.info = nil, Info{}
		return create(t, s, c, state)
	}
	failing := func(op states.Op, errno error, do func() error) error {
		s.answers[op] = errno
		defer delete(s.answers, op)
		return do()
	}
	event := func(id *ID, after time.Duration, ev *DriverEvent) error {
		age(id, after)
		s.info = Info{Local: MustAddr("10.0.0.5:40000"), Peer: MustAddr("10.0.0.7:7471"), Device: "iwarp0"}
		s.up.Event(id.Handle(), ev)
		got, _, err := c.GetEvent()
		if err != nil {
			t.Fatal(err)
		}
		f, _ := got.(Failure)
		return f
	}

	id := inState(states.Idle)
	add("Listen before BindAddr", id.Listen(0))
	add("Connect before everything", id.Connect(nil, nil))
	add("BindAddr: the port is taken", failing(states.OpBindAddr, unix.EADDRINUSE, func() error { return id.BindAddr(MustAddr("10.0.0.5:7471")) }))
	add("BindAddr: the port is taken on loopback", failing(states.OpBindAddr, ErrPortTaken, func() error { return id.BindAddr(MustAddr("127.0.0.1:7471")) }))
	add("BindAddr: not an address of this host", failing(states.OpBindAddr, unix.EADDRNOTAVAIL, func() error { return id.BindAddr(MustAddr("10.9.9.9:7471")) }))
	add("BindAddr: a privileged port", failing(states.OpBindAddr, unix.EACCES, func() error { return id.BindAddr(MustAddr("10.0.0.5:80")) }))
	s.info.Local = MustAddr("0.0.0.0:40000") // the bind inside has succeeded
	add("ResolveAddr: no route", failing(states.OpResolveAddr, unix.ENETUNREACH, func() error { return id.ResolveAddr(Addr{}, MustAddr("10.0.0.7:7471"), 0) }))
	add("BindAddr after a failed ResolveAddr, which has bound the identifier", id.BindAddr(MustAddr("10.0.0.5:7471")))
	s.info.Local = Addr{}

	id = inState(states.AddrQuery)
	add("AddrError: the neighbour does not answer", event(id, 2*time.Second, &DriverEvent{Kind: states.KindAddrError, Status: -110}))
	id = inState(states.RouteQuery)
	add("RouteError", event(id, 2*time.Second, &DriverEvent{Kind: states.KindRouteError, Status: -110}))
	id = inState(states.Connecting)
	add("Accept while connecting", id.Accept(nil, nil))
	add("Disconnect before connected", id.Disconnect())
	add("Rejected: no listener (InfiniBand)", event(id, time.Millisecond, &DriverEvent{Kind: states.KindRejected, Status: 8}))
	add("Connect again on a rejected identifier", id.Connect(nil, nil))
	id = inState(states.Connecting)
	add("Rejected by the application", event(id, time.Millisecond, &DriverEvent{Kind: states.KindRejected, Status: 28}))
	id = inState(states.Connecting)
	add("Rejected by the application, with a reason in the private data", event(id, time.Millisecond, &DriverEvent{
		// InfiniBand pads
		Kind: states.KindRejected, Status: 28, PrivateData: []byte("this is a \"chat/1\" server\x00\x00"),
	}))
	id = inState(states.Connecting)
	add("Rejected by the application, with private data that is not text", event(id, time.Millisecond, &DriverEvent{
		Kind: states.KindRejected, Status: 28, PrivateData: []byte("\x1b[2Jall is well"),
	}))
	id = inState(states.Connecting)
	add("Rejected: no listener (iWARP)", event(id, time.Millisecond, &DriverEvent{Kind: states.KindRejected, Status: -111}))
	id = inState(states.Connecting)
	add("Unreachable: no answer", event(id, 10*time.Second, &DriverEvent{Kind: states.KindUnreachable, Status: -110}))
	id = inState(states.Connecting)
	add("ConnectError: the peer speaks another protocol", event(id, time.Millisecond, &DriverEvent{
		Kind: states.KindConnectError, Status: -22,
		// as the embedded iWARP device words it
		Err: fmt.Errorf(`iwarp: reply: the peer does not speak iWARP (MPA), its first bytes are "HTTP/1.1 400 Bad Req": wire: MPA key byte 0x48: `+
			"MPA 0/04 invalid Request or Reply frame (Terminate sent: MPA 0/04 invalid Request or Reply frame) [%w]", unix.EINVAL),
	}))
	id = inState(states.RouteResolved)
	add("Connect: too many open files", failing(states.OpConnect, unix.EMFILE, func() error { return id.Connect(nil, nil) }))
	id = inState(states.Connected)
	age(id, time.Minute)
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindDeviceRemoval})
	c.queue = nil
	add("Disconnect after DeviceRemoval", id.Disconnect())
	id = inState(states.Idle)
	if err := id.Destroy(); err != nil {
		t.Fatal(err)
	}
	add("BindAddr after DestroyID", id.BindAddr(MustAddr("0.0.0.0:0")))
	s.createErr = unix.EMFILE
	_, err := c.CreateID(PortSpaceTCP)
	add("CreateID: too many open files", err)
	_, err = ParseAddr("localhost:7471")
	add("An address that is not one", err)
	return all
}

// A command that an event has ended is not answered again when the driver is done with it.
func TestEventEndsACommandInFlight(t *testing.T) {
	s := &script{}
	c := open(t, s)
	id := create(t, s, c, states.RouteResolved)
	s.answers[states.OpConnect] = ErrPending
	answered := 0
	c.sink = func(_ *ID, ev Event, answers *Pending) { answers.Answer(ev) }
	id.Do(&Connect{}, func(Event) { answered++ })
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindDeviceRemoval})
	s.up.Done(id.Handle(), unix.ENODEV)
	if answered != 1 {
		t.Errorf("Connect was answered %d times", answered)
	}
}
