package cmid

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// want checks that the driver was given exactly these commands.
func (s *script) want(t *testing.T, why string, cmds ...Command) {
	t.Helper()
	if len(s.did) != len(cmds) {
		t.Fatalf("%s: the driver got %d commands, want %d", why, len(s.did), len(cmds))
	}
	for i := range cmds {
		if !reflect.DeepEqual(s.did[i], cmds[i]) {
			t.Errorf("%s: command %d is %+v, want %+v", why, i, s.did[i], cmds[i])
		}
	}
	s.did = nil
}

// TestCalls shows what rdma_bind_addr(3), rdma_resolve_addr(3) and rdma_listen(3) promise above the
// device: commands passed to it, answers, and refusals. Package conformance tests the promises of a
// device. internal/docscheck/manpages.md has the sentences.
func TestCalls(t *testing.T) {
	var (
		local  = MustAddr("10.0.0.5:7471")
		chosen = MustAddr("10.0.0.5:40001")
		peer   = MustAddr("10.0.0.7:7471")
	)
	setup := func(t *testing.T, ps PortSpace) (*script, *Channel, *ID) {
		s := &script{}
		c := open(t, s)
		id, err := c.CreateID(ps)
		if err != nil {
			t.Fatal(err)
		}
		return s, c, id
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(t *testing.T, id *ID, want states.State) {
		t.Helper()
		if id.State() != want {
			t.Errorf("state %v, want %v", id.State(), want)
		}
	}

	// manpages: bind_addr-2
	t.Run("bind/specific address", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		s.info = Info{Local: local, Device: "dev0", Port: 1}
		bound, ok := atOnce(id, &BindAddr{Addr: local}).(*Bound)
		if !ok || bound.Local != local || bound.Device != "dev0" || bound.Ident() != id.Handle() {
			t.Errorf("answer %+v, want the address and its device", bound)
		}
		s.want(t, "the address reaches the device as given", &BindAddr{Addr: local})
		in(t, id, states.Bound)
	})
	// manpages: bind_addr-1
	t.Run("bind/wildcard", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		s.info = Info{Local: MustAddr("0.0.0.0:7471")}
		bound, ok := atOnce(id, &BindAddr{Addr: MustAddr("0.0.0.0:7471")}).(*Bound)
		if !ok || !bound.Local.IsWildcard() || bound.Device != "" || id.Device() != nil {
			t.Errorf("answer %+v, want the wildcard and no device", bound)
		}
		must(t, id.Listen(1)) // and no device is needed to listen
	})
	// manpages: bind_addr-8
	t.Run("bind/port 0", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		must(t, id.BindAddr(MustAddr("10.0.0.5:0")))
		s.info = Info{Local: chosen}
		if id.SrcPort() != 40001 || id.LocalAddr() != chosen {
			t.Errorf("port %d of %v, want the one the device chose", id.SrcPort(), id.LocalAddr())
		}
	})
	// manpages: bind_addr-4
	t.Run("bind/errno", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		for _, errno := range []unix.Errno{unix.EADDRINUSE, unix.EADDRNOTAVAIL, unix.EACCES, unix.ENODEV} {
			s.answers[states.OpBindAddr] = errno
			if err := id.BindAddr(local); !errors.Is(err, errno) {
				t.Errorf("got %v, want %v", err, errno)
			}
			in(t, id, states.Idle)
		}
		delete(s.answers, states.OpBindAddr)
		must(t, id.BindAddr(local)) // a failed bind leaves nothing behind
		if err := id.BindAddr(local); !errors.Is(err, unix.EINVAL) {
			t.Errorf("a second bind: %v, want EINVAL", err)
		}
	})
	// manpages: bind_addr-5
	t.Run("bind/before listen", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		must(t, id.BindAddr(local))
		must(t, id.Listen(5))
		s.want(t, "bind, then listen", &BindAddr{Addr: local}, &Listen{Backlog: 5})
		in(t, id, states.Listening)
	})
	// manpages: bind_addr-6
	t.Run("bind/before resolve", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		must(t, id.BindAddr(local))
		must(t, id.ResolveAddr(Addr{}, peer, time.Second))
		s.want(t, "bind, then resolve", &BindAddr{Addr: local}, &ResolveAddr{Dst: peer, Timeout: time.Second})
		in(t, id, states.AddrQuery)
	})

	// manpages: resolve_addr-1
	t.Run("resolve/no source", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		must(t, id.ResolveAddr(Addr{}, peer, 0))
		s.want(t, "no source is made up above the device", &ResolveAddr{Dst: peer})
	})
	// manpages: resolve_addr-3
	t.Run("resolve/resolved", func(t *testing.T) {
		s, c, id := setup(t, PortSpaceTCP)
		must(t, id.ResolveAddr(local, peer, time.Second))
		s.want(t, "source and destination", &ResolveAddr{Src: local, Dst: peer, Timeout: time.Second})
		s.info, s.device = Info{Local: chosen, Peer: peer, Device: "dev0"}, dev{}
		s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindAddrResolved})
		ev, from, err := c.GetEvent()
		r, ok := ev.(*AddrResolved)
		if err != nil || from != id || !ok || r.Local != chosen || r.Peer != peer || r.Device != "dev0" || r.Status != 0 {
			t.Fatalf("got %+v, %v, want AddrResolved with addresses and device", ev, err)
		}
		if id.Device() == nil || id.LocalAddr() != chosen || id.PeerAddr() != peer || id.DstPort() != 7471 {
			t.Errorf("device %v, %v -> %v", id.Device(), id.LocalAddr(), id.PeerAddr())
		}
		in(t, id, states.AddrResolved)
	})
	// manpages: resolve_addr-5
	t.Run("resolve/errno", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		s.answers[states.OpResolveAddr] = unix.ENETUNREACH
		if err := id.ResolveAddr(Addr{}, peer, 0); !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("got %v, want ENETUNREACH", err)
		}
		in(t, id, states.Idle) // it has no address: the bind inside has failed
		s.info.Local = local
		if err := id.ResolveAddr(Addr{}, peer, 0); !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("got %v, want ENETUNREACH", err)
		}
		in(t, id, states.Bound) // as the kernel leaves it
	})
	// manpages: resolve_addr-7
	t.Run("resolve/source binds", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		s.answers[states.OpResolveAddr], s.info.Local = unix.ENETUNREACH, local
		if err := id.ResolveAddr(local, peer, 0); err == nil {
			t.Fatal("no error")
		}
		if err := id.BindAddr(local); !errors.Is(err, unix.EINVAL) {
			t.Errorf("bind after a resolve with a source: %v, want EINVAL, for it is bound", err)
		}
		// rdma_listen(3) demands a bound identifier, so this one counts as bound
		must(t, id.Listen(1))
	})
	// manpages: resolve_addr-5
	t.Run("resolve/address error", func(t *testing.T) {
		s, c, id := setup(t, PortSpaceTCP)
		must(t, id.ResolveAddr(Addr{}, peer, time.Second))
		s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindAddrError, Status: -int32(unix.ETIMEDOUT)})
		ev, _, _ := c.GetEvent()
		if f, ok := ev.(*AddrError); !ok || !errors.Is(f, unix.ETIMEDOUT) || f.Status != -int32(unix.ETIMEDOUT) {
			t.Fatalf("got %v, want AddrError with ETIMEDOUT", ev)
		}
		must(t, id.ResolveAddr(Addr{}, peer, time.Second)) // and may be tried again
	})
	// manpages: resolve_addr-10
	t.Run("resolve/before route and connect", func(t *testing.T) {
		s, c, id := setup(t, PortSpaceTCP)
		for _, call := range []func() error{func() error { return id.ResolveRoute(0) }, func() error { return id.Connect(nil, nil) }} {
			if err := call(); !errors.Is(err, unix.EINVAL) {
				t.Errorf("before ResolveAddr: %v, want EINVAL", err)
			}
		}
		s.want(t, "a refused call does not reach the device")
		connected := create(t, s, c, states.Connecting)
		s.want(t, "the active side's order", &ResolveAddr{Dst: peer}, &ResolveRoute{}, &Connect{})
		in(t, connected, states.Connecting)
	})

	// manpages: listen-6
	t.Run("listen/unbound", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		var f *CommandFailed
		if err := id.Listen(1); !errors.Is(err, unix.EINVAL) || !errors.As(err, &f) || len(f.Legal) == 0 || f.Legal[0] != states.OpBindAddr {
			t.Errorf("got %v, want EINVAL and that BindAddr is legal", err)
		}
		s.want(t, "a refused call does not reach the device")
		in(t, id, states.Idle)
	})
	// manpages: listen-1
	t.Run("listen/backlog", func(t *testing.T) {
		for _, r := range []struct{ asked, got int }{{1, 1}, {128, 128}, {0, 1024}, {-1, 1024}, {1 << 30, 1024}} {
			s, _, id := setup(t, PortSpaceTCP)
			must(t, id.BindAddr(local))
			s.info = Info{Local: local}
			l, ok := atOnce(id, &Listen{Backlog: r.asked}).(*Listening)
			if !ok || l.Backlog != r.got || l.Local != local {
				t.Errorf("backlog %d: %+v, want %d of at most 1024", r.asked, l, r.got)
			}
		}
	})
	// manpages: listen-5
	t.Run("listen/errno", func(t *testing.T) {
		s, _, id := setup(t, PortSpaceTCP)
		must(t, id.BindAddr(local))
		s.answers[states.OpListen] = unix.EADDRINUSE
		err := id.Listen(1)
		if f, ok := errors.AsType[*CommandFailed](err); !ok || !errors.Is(err, unix.EADDRINUSE) || f.Status != -int32(unix.EADDRINUSE) {
			t.Errorf("got %v, want EADDRINUSE, also as its status", err)
		}
		in(t, id, states.Bound)
	})
	for _, r := range []struct {
		name string
		ps   PortSpace
	}{
		// manpages: listen-2
		{"listen/connection request", PortSpaceTCP},
		// manpages: listen-3
		{"listen/datagram request", PortSpaceUDP},
	} {
		t.Run(r.name, func(t *testing.T) {
			s, c, id := setup(t, r.ps)
			must(t, id.BindAddr(local))
			must(t, id.Listen(1))
			s.info = Info{Local: local, Peer: peer}
			child := s.up.NewHandle()
			s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindConnectRequest, Child: s.id(child), PrivateData: []byte("hello")})
			ev, from, err := c.GetEvent()
			q, ok := ev.(*ConnectRequest)
			if err != nil || !ok || q.Listener != id.Handle() || q.Ident() != child || q.Peer != peer || string(q.PrivateData) != "hello" {
				t.Fatalf("got %+v, %v, want the request on a new identifier", ev, err)
			}
			if from.PortSpace() != r.ps || from.Datagram() != r.ps.Datagram() {
				t.Errorf("the child's port space is %v, datagrams: %v; want the listener's", from.PortSpace(), from.Datagram())
			}
			in(t, from, states.ConnectRequested)
			in(t, id, states.Listening)
		})
	}
}

// TestCreateIDFor: the queue pair type that rdma_getaddrinfo(3) gives is the one that the device is
// asked for, and where there are no such queue pairs nothing is made.
// manpages: getaddrinfo-31
func TestCreateIDFor(t *testing.T) {
	for _, r := range []struct {
		name  string
		hints AddrInfo
		want  kind
		errno unix.Errno
	}{
		{"nothing", AddrInfo{}, kind{PortSpaceTCP, QPTypeRC}, 0},
		{"UD and IB", AddrInfo{PortSpace: PortSpaceIB, QPType: QPTypeUD}, kind{PortSpaceIB, QPTypeUD}, 0},
		{"RC and IB", AddrInfo{PortSpace: PortSpaceIB, QPType: QPTypeRC}, kind{PortSpaceIB, QPTypeRC}, 0},
		{"IB", AddrInfo{PortSpace: PortSpaceIB}, kind{PortSpaceIB, QPTypeRC}, 0},
		{"UD", AddrInfo{QPType: QPTypeUD}, kind{PortSpaceUDP, QPTypeUD}, 0},
		{"UDP", AddrInfo{PortSpace: PortSpaceUDP}, kind{PortSpaceUDP, QPTypeUD}, 0},
		{"UD and IPOIB", AddrInfo{PortSpace: PortSpaceIPOIB, QPType: QPTypeUD}, kind{PortSpaceIPOIB, QPTypeUD}, 0},
		{"UC", AddrInfo{QPType: QPTypeUC}, kind{}, unix.EPROTONOSUPPORT},
		{"XRC", AddrInfo{QPType: QPTypeXRCSend, PortSpace: PortSpaceIB}, kind{}, unix.EPROTONOSUPPORT},
	} {
		t.Run(r.name, func(t *testing.T) {
			list, err := LookupAddrInfo(t.Context(), "10.0.0.7", "7471", &r.hints)
			if err != nil {
				t.Fatal(err)
			}
			// the hints and the result
			for _, ai := range []*AddrInfo{&r.hints, &list[0]} {
				s := &script{}
				id, err := open(t, s).CreateIDFor(ai)
				if r.errno != 0 {
					if !errors.Is(err, r.errno) || len(s.made) > 0 {
						t.Errorf("%v, and the device was asked for %v; want %v", err, s.made, r.errno)
					}
					continue
				}
				if err != nil || len(s.made) != 1 || s.made[0] != r.want {
					t.Fatalf("%v, the device was asked for %v; want %v", err, s.made, r.want)
				}
				if id.Datagram() != (r.want.t == QPTypeUD) || id.PortSpace() != r.want.ps {
					t.Errorf("datagrams: %v, port space %v", id.Datagram(), id.PortSpace())
				}
			}
		})
	}
	t.Run("no hints", func(t *testing.T) {
		s := &script{}
		if _, err := open(t, s).CreateIDFor(nil); err != nil || s.made[0] != (kind{PortSpaceTCP, QPTypeRC}) {
			t.Errorf("%v, the device was asked for %v", err, s.made)
		}
	})
	t.Run("errors say what there is", func(t *testing.T) {
		for want, ai := range map[string]AddrInfo{
			"port space TCP has queue pairs of type RC, not UD":                            {PortSpace: PortSpaceTCP, QPType: QPTypeUD},
			"port space UDP has queue pairs of type UD, not RC":                            {PortSpace: PortSpaceUDP, QPType: QPTypeRC},
			"PortSpaceTCP has RC, PortSpaceUDP has UD":                                     {PortSpace: PortSpaceUDP, QPType: QPTypeRC},
			"no device here has queue pairs of type XRC_RECV, only RC and UD":              {QPType: QPTypeXRCRecv},
			"no device here has queue pairs of type QPType(200), only RC and UD":           {QPType: 200},
			"every device has PortSpaceTCP with QPTypeRC; datagrams are InfiniBand's and ": {QPType: QPTypeRawPacket},
		} {
			s := &script{}
			_, err := open(t, s).CreateIDFor(&ai)
			errno := unix.EINVAL
			if ai.PortSpace == 0 {
				errno = unix.EPROTONOSUPPORT
			}
			if !errors.Is(err, errno) || len(s.made) > 0 || !strings.Contains(err.Error(), want) {
				t.Errorf("%v and %v: %v; want %v, and %q", ai.PortSpace, ai.QPType, err, errno, want)
			}
		}
	})
	t.Run("a request is of its listener's type", func(t *testing.T) {
		s := &script{}
		c := open(t, s)
		id, err := c.CreateIDFor(&AddrInfo{PortSpace: PortSpaceIB, QPType: QPTypeUD})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(id.BindAddr(MustAddr("10.0.0.5:7471")), id.Listen(1)); err != nil {
			t.Fatal(err)
		}
		s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindConnectRequest, Child: s.id(s.up.NewHandle())})
		if _, child, err := c.GetEvent(); err != nil || !child.Datagram() || child.PortSpace() != PortSpaceIB {
			t.Errorf("%v: datagrams %v, port space %v", err, child.Datagram(), child.PortSpace())
		}
	})
}

// TestOptionBounds: an option has the values of rdma_set_option(3), and there are no others.
func TestOptionBounds(t *testing.T) {
	for _, r := range []struct {
		option Option
		value  int
		want   error
	}{
		{OptionTOS, 0, nil},
		{OptionTOS, 255, nil},
		{OptionTOS, 256, unix.EINVAL},
		{OptionTOS, -1, unix.EINVAL},
		{OptionReuseAddr, 1, nil},
		{OptionReuseAddr, 2, unix.EINVAL},
		{OptionAFOnly, 1, nil},
		{OptionAFOnly, 2, unix.EINVAL},
		{OptionAckTimeout, 31, nil},
		{OptionAckTimeout, 32, unix.EINVAL},
		{OptionAckTimeout + 1, 0, unix.ENOSYS},
	} {
		if err := r.option.Check(r.value); !errors.Is(err, r.want) {
			t.Errorf("%v = %d: %v, want %v", r.option, r.value, err, r.want)
		}
	}
}
