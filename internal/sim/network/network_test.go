package network

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// rig is two machines, each with a process, and a manual clock.
type rig struct {
	t      *testing.T
	net    *Network
	now    time.Time
	rand   *rand.Rand
	a, b   *Machine
	pa, pb *Process
	ka, kb *Stack
	fail   func(m *Machine, call string) unix.Errno
	trace  []string
}

var addrB = netip.MustParseAddr("10.0.0.2")

func newRig(t *testing.T, seed uint64, cfg Config) *rig {
	r := &rig{t: t, now: time.Unix(1e9, 0), rand: rand.New(rand.NewPCG(seed, 1))}
	cfg.Now, cfg.Rand = func() time.Time { return r.now }, r.rand
	cfg.Fail = func(m *Machine, call string) unix.Errno {
		if r.fail != nil {
			return r.fail(m, call)
		}
		return 0
	}
	r.net = New(cfg)
	r.a = r.net.Machine("a", prefix("10.0.0.1/24"), prefix("fd00::1/64"))
	r.b = r.net.Machine("b", prefix("10.0.0.2/24"), prefix("fd00::2/64"))
	r.pa, r.pb = r.a.Process(Limits{}), r.b.Process(Limits{})
	r.ka, r.kb = r.pa.Stack(), r.pb.Stack()
	return r
}

// step runs one event. It returns false if nothing is due within d.
func (r *rig) step(d time.Duration) bool {
	due, ok := r.net.Next()
	if !ok || due.After(r.now.Add(d)) {
		return false
	}
	if due.After(r.now) {
		r.now = due
	}
	r.trace = append(r.trace, r.net.Step(r.rand.IntN(r.net.Due(r.now))))
	return true
}

// pass runs all events that are due within d, and advances the clock by d.
func (r *rig) pass(d time.Duration) {
	end := r.now.Add(d)
	for r.step(end.Sub(r.now)) {
	}
	r.now = end
}

func sa(ip netip.Addr, port int) unix.Sockaddr {
	if ip.Is4() {
		return &unix.SockaddrInet4{Addr: ip.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: ip.As16(), Port: port}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%v\n%q", err, r.trace)
	}
}

func (r *rig) want(err error, want unix.Errno) {
	r.t.Helper()
	if !errors.Is(err, want) {
		r.t.Fatalf("error %v, want %v\n%q", err, want, r.trace)
	}
}

func (r *rig) wantReady(p *Process, fd int, want eventloop.Events) {
	r.t.Helper()
	if ev := p.Ready(fd); ev != want {
		r.t.Fatalf("ready: %v, want %v\n%q", ev, want, r.trace)
	}
}

func (r *rig) socket(k *Stack) int {
	r.t.Helper()
	fd, err := k.Socket(unix.AF_INET, unix.SOCK_STREAM)
	r.must(err)
	return fd
}

// listener listens at b's port.
func (r *rig) listener(port, backlog int) int {
	r.t.Helper()
	fd := r.socket(r.kb)
	r.must(r.kb.SetOption(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	r.must(r.kb.Bind(fd, sa(addrB, port)))
	r.must(r.kb.Listen(fd, backlog))
	return fd
}

// pair connects a to b.
func (r *rig) pair() (a, b int) {
	r.t.Helper()
	l := r.listener(7, 8)
	a = r.socket(r.ka)
	r.want(r.ka.Connect(a, sa(addrB, 7)), unix.EINPROGRESS)
	r.pass(time.Second)
	b, _, err := r.kb.Accept(l)
	r.must(err)
	r.must(r.kb.Close(l))
	r.wantReady(r.pa, a, eventloop.Writable)
	r.wantReady(r.pb, b, eventloop.Writable)
	return a, b
}

func TestAConnectionCarriesBytesBothWaysAndEnds(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
	a, b := r.pair()
	for _, way := range []struct {
		from, to *Stack
		p        *Process
		ffd, tfd int
	}{{r.ka, r.kb, r.pb, a, b}, {r.kb, r.ka, r.pa, b, a}} {
		n, err := way.from.Send(way.ffd, [][]byte{[]byte("hello "), []byte("world")}, 0)
		r.must(err)
		if n != 11 {
			t.Fatalf("sent %d", n)
		}
		r.pass(time.Second)
		r.wantReady(way.p, way.tfd, eventloop.Readable|eventloop.Writable)
		got := make([]byte, 20)
		n, err = way.to.Recv(way.tfd, got)
		r.must(err)
		if !bytes.Equal(got[:n], []byte("hello world")) {
			t.Fatalf("received %q", got[:n])
		}
		_, err = way.to.Recv(way.tfd, got)
		r.want(err, unix.EAGAIN)
	}
	r.must(r.ka.Close(a))
	r.pass(time.Second)
	r.wantReady(r.pb, b, eventloop.Readable|eventloop.Writable)
	n, err := r.kb.Recv(b, make([]byte, 1))
	if n != 0 || err != nil {
		t.Fatalf("read %d, %v at the end", n, err)
	}
	r.must(r.kb.Close(b))
	r.pass(time.Second)
	if len(r.b.Left())+len(r.a.Left())+len(r.a.conns)+len(r.b.conns) != 0 || r.net.InFlight() != 0 {
		t.Fatalf("left: %v %v %q", r.a.Left(), r.b.Left(), r.trace)
	}
	if _, ok := r.net.Next(); ok {
		t.Fatal("something is still to happen")
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
