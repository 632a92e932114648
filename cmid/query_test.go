package cmid

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// atlas is a scripted driver that knows attributes and ways.
type atlas struct {
	script
	asked []verbs.QPState
	err   error
}

// mapped is an identifier of an atlas's.
type mapped struct {
	*scripted
	*atlas
}

func (a *atlas) InitQPAttr(s verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	a.asked = append(a.asked, s)
	return verbs.QPAttr{State: s, Port: 1}, verbs.QPAttrState | verbs.QPAttrPort, a.err
}

func (a *atlas) QueryPath() ([]byte, error) { return make([]byte, PathLen), a.err }

func (a *atlas) QueryGID() (local, peer Addr, err error) {
	return Addr{IB: &SockaddrIB{SID: 1<<24 | 7471}}, Addr{IB: &SockaddrIB{SID: 1<<24 | 7472}}, a.err
}

func TestQueries(t *testing.T) {
	a := &atlas{}
	c := open(t, &a.script)
	a.over = func(id *scripted) DriverID { return mapped{id, a} }
	id := create(t, &a.script, c, states.AddrResolved)
	attr, mask, err := id.InitQPAttr(verbs.QPInit)
	if err != nil || attr.State != verbs.QPInit || attr.Port != 1 || mask != verbs.QPAttrState|verbs.QPAttrPort {
		t.Errorf("InitQPAttr: %+v, %#x, %v, want the driver's", attr, mask, err)
	}
	if p, err := id.QueryPath(); err != nil || len(p) != PathLen {
		t.Errorf("QueryPath: %d bytes, %v", len(p), err)
	}
	if l, p, err := id.QueryGID(); err != nil || l.Port() != 7471 || p.Port() != 7472 {
		t.Errorf("QueryGID: %v, %v, %v", l, p, err)
	}
	a.err = unix.ENODEV
	_, _, attrErr := id.InitQPAttr(verbs.QPRTS)
	_, pathErr := id.QueryPath()
	_, _, gidErr := id.QueryGID()
	for name, err := range map[string]error{"init_qp_attr": attrErr, "query_path": pathErr, "query_gid": gidErr} {
		var f *CommandFailed
		if !errors.As(err, &f) || f.Op != name || !errors.Is(err, unix.ENODEV) {
			t.Errorf("%s: %v, want CommandFailed with the driver's errno", name, err)
		}
	}
}

// TestInitQPAttrIsJudged: the state machine has a row for INIT, one for RTR and RTS, one for the
// rest.
func TestInitQPAttrIsJudged(t *testing.T) {
	a := &atlas{}
	c := open(t, &a.script)
	a.over = func(id *scripted) DriverID { return mapped{id, a} }
	id := create(t, &a.script, c, states.Connecting)
	for s, want := range map[verbs.QPState]error{
		verbs.QPInit: nil, verbs.QPRTR: unix.EINVAL, verbs.QPRTS: unix.EINVAL, verbs.QPReset: unix.EINVAL, verbs.QPError: unix.EINVAL,
		verbs.QPError + 1: unix.EINVAL,
	} {
		a.asked = nil
		if _, _, err := id.InitQPAttr(s); !errors.Is(err, want) || len(a.asked) != 0 && want != nil {
			t.Errorf("state %d while connecting: %v, driver asked %v; want %v", s, err, a.asked, want)
		}
	}
	if _, _, err := create(t, &script{answers: map[states.Op]error{}}, c, states.Idle).InitQPAttr(verbs.QPInit); !errors.Is(err, unix.EINVAL) {
		t.Errorf("without a device: %v, want EINVAL", err)
	}
}

// TestNewCommands: how the commands of 2025 and SetIBPath are answered.
func TestNewCommands(t *testing.T) {
	s := &script{}
	c := open(t, s)
	delivered := func(id *ID) Event {
		t.Helper()
		ev, from, err := c.GetEvent()
		if err != nil || from != id {
			t.Fatalf("GetEvent: %v of %v, %v", ev, from, err)
		}
		return ev
	}

	id := create(t, s, c, states.AddrResolved)
	s.did = nil
	paths := bytes.Repeat([]byte{1}, PathLen)
	if err := id.SetIBPath(paths); err != nil || id.State() != states.RouteQuery {
		t.Errorf("SetIBPath: %v, state %v", err, id.State())
	}
	s.want(t, "the paths reach the device", &SetIBPath{Paths: paths})
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindUser})
	if _, ok := delivered(id).(*User); !ok || waiting(id) == nil {
		t.Error("a user event is no answer")
	}
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindRouteResolved})
	if _, ok := delivered(id).(*RouteResolved); !ok || waiting(id) != nil || id.State() != states.RouteResolved {
		t.Errorf("state %v, waiting for %v: RouteResolved is the answer", id.State(), waiting(id))
	}

	s.device = nil
	id = create(t, s, c, states.AddrResolved)
	s.answers[states.OpSetIBPath] = unix.EINVAL
	if err := id.SetIBPath(nil); !errors.Is(err, unix.EINVAL) || id.State() != states.AddrResolved {
		t.Errorf("no paths: %v, state %v, want EINVAL and another try", err, id.State())
	}

	s.device = dev{}
	id = create(t, s, c, states.Idle)
	if err := id.BindAddr(MustAddr("10.0.0.5:7471")); err != nil {
		t.Fatal(err)
	}
	s.did = nil
	for _, kind := range []states.Kind{states.KindAddrInfoError, states.KindAddrInfoResolved} {
		if err := id.ResolveIBService(0, "disk"); err != nil || id.State() != states.AddrInfoQuery {
			t.Fatalf("ResolveIBService: %v, state %v", err, id.State())
		}
		s.want(t, "the name reaches the device", &ResolveIBService{Name: "disk"})
		s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindUser, Arg: 9})
		if u, ok := delivered(id).(*User); !ok || u.Arg != 9 || waiting(id) == nil {
			t.Errorf("a user event is no answer")
		}
		s.up.Event(id.Handle(), &DriverEvent{Kind: kind, AddrInfo: []AddrInfo{{Dst: MustAddr("10.0.0.7:1")}}, Status: -int32(kind%2) * 2})
		switch ev := delivered(id).(type) {
		case *AddrInfoError:
			if kind != states.KindAddrInfoError || !errors.Is(ev, unix.ENOENT) || ev.Op != "resolve_addrinfo" || id.State() != states.Bound {
				t.Errorf("%v in state %v, want ENOENT", ev, id.State())
			}
		case *AddrInfoResolved:
			if kind != states.KindAddrInfoResolved || len(ev.Info) != 1 || id.State() != states.AddrInfoResolved {
				t.Errorf("%v in state %v, want what the driver found", ev, id.State())
			}
		default:
			t.Errorf("got %T", ev)
		}
		if waiting(id) != nil {
			t.Errorf("%v has not answered the command", kind)
		}
	}

	s.did = nil
	if done, ok := atOnce(id, &WriteCMEvent{Arg: 5}).(*Done); !ok || done.Ident() != id.Handle() {
		t.Error("WriteCMEvent is not Done")
	}
	s.want(t, "the word reaches the device", &WriteCMEvent{Arg: 5})
	s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindInternal, Arg: 6})
	if in, ok := delivered(id).(*Internal); !ok || in.Arg != 6 {
		t.Error("an internal event is not delivered")
	}
}
