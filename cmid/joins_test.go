package cmid

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// joining returns a datagram identifier with a device, and the list of events that it delivers.
func joining(t *testing.T) (s *script, id *ID, delivered *[]queued) {
	t.Helper()
	s = &script{device: dev{}}
	c := open(t, s)
	delivered = new([]queued)
	c.sink = func(id *ID, ev Event, answers *Pending) {
		*delivered = append(*delivered, queued{id, ev, answers})
		answers.Answer(ev)
	}
	id, err := c.CreateID(PortSpaceUDP)
	if err != nil {
		t.Fatal(err)
	}
	id.enterState(states.AddrResolved)
	return s, id, delivered
}

func join(t *testing.T, id *ID, group Addr) *JoinMulticast {
	t.Helper()
	j := &JoinMulticast{Addr: group}
	if ev := atOnce(id, j); ev != nil {
		t.Fatalf("join %v: %v", group, ev)
	}
	return j
}

// Joins and other commands wait side by side; a group's event answers the join of that group, in
// whatever order they come.
func TestJoinsAreAnsweredByGroup(t *testing.T) {
	s, id, delivered := joining(t)
	ib := func() Addr { return Addr{IB: &SockaddrIB{GID: [16]byte{0: 0xff, 15: 1}}} }
	first, second := join(t, id, MustAddr("239.0.0.1:0")), join(t, id, MustAddr("239.0.0.2:0"))
	third := join(t, id, ib())
	route := &ResolveRoute{}
	if ev := atOnce(id, route); ev != nil {
		t.Fatal(ev)
	}
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindMulticastJoin, Addr: second.Addr})
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindRouteResolved})
	// an equal address, elsewhere in memory
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindMulticastError, Addr: ib(), Status: -110})
	if waiting(id) != Command(first) {
		t.Errorf("waiting for %v, want the first join", waiting(id))
	}
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindMulticastJoin, Addr: first.Addr})
	want := []Command{second, route, third, first}
	if len(*delivered) != len(want) {
		t.Fatalf("got %v, want %d events", *delivered, len(want))
	}
	for i, q := range *delivered {
		if q.answers.Command != want[i] {
			t.Errorf("%v answers %+v, want %+v", q.ev, q.answers, want[i])
		}
	}
	if f := (*delivered)[2].ev.(Failure); f.Failed() != Command(third) || !errors.Is(f, unix.ETIMEDOUT) {
		t.Errorf("%v is of %+v, want ETIMEDOUT of the join", f, f.Failed())
	}
	if waiting(id) != nil {
		t.Errorf("still waiting for %+v", waiting(id))
	}
}

// No event follows a leave, and none the removal of the device: the joins that wait are answered
// then.
func TestJoinsThatNoEventAnswers(t *testing.T) {
	s, id, delivered := joining(t)
	left, other := join(t, id, MustAddr("239.0.0.1:0")), join(t, id, MustAddr("239.0.0.2:0"))
	if err := id.LeaveMulticast(left.Addr); err != nil {
		t.Fatal(err)
	}
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindDeviceRemoval})
	if len(*delivered) != 3 {
		t.Fatalf("got %v, want the end of a join, DeviceRemoval and the end of the other", *delivered)
	}
	for i, want := range map[int]struct {
		cmd   Command
		errno unix.Errno
	}{0: {left, unix.ECANCELED}, 2: {other, unix.ENODEV}} {
		f, ok := (*delivered)[i].ev.(*CommandFailed)
		if !ok || (*delivered)[i].answers.Command != want.cmd || !errors.Is(f, want.errno) {
			t.Errorf("%v answers %+v, want %v of %+v", (*delivered)[i].ev, (*delivered)[i].answers, want.errno, want.cmd)
		}
	}
	if waiting(id) != nil {
		t.Errorf("still waiting for %+v", waiting(id))
	}
}

// A command that fails immediately does not affect another command's answer.
func TestFailureLeavesOthersWaiting(t *testing.T) {
	s, id, delivered := joining(t)
	j := join(t, id, MustAddr("239.0.0.1:0"))
	route := &ResolveRoute{}
	if ev := atOnce(id, route); ev != nil {
		t.Fatal(ev)
	}
	s.answers[states.OpSetTOS] = unix.EINVAL
	if err := id.SetOption(OptionTOS, 300); err == nil {
		t.Fatal("the driver's EINVAL was lost")
	}
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindRouteResolved})
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindMulticastJoin, Addr: j.Addr})
	if len(*delivered) != 2 || (*delivered)[0].answers.Command != Command(route) || (*delivered)[1].answers.Command != Command(j) {
		t.Errorf("got %v: each answers its command", *delivered)
	}
}
