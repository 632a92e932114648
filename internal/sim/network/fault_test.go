package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

const broken = eventloop.Readable | eventloop.Writable | eventloop.Hangup | eventloop.Error

// tune sets the options that the embedded device sets, with 30 s as its UserTimeout.
func (r *rig) tune(k *Stack, fd int) {
	r.t.Helper()
	r.must(k.SetOption(fd, unix.IPPROTO_TCP, tcpUserTimeout, 30000))
	r.must(k.SetOption(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1))
	r.must(k.SetOption(fd, unix.IPPROTO_TCP, tcpKeepIdle, 15))
	r.must(k.SetOption(fd, unix.IPPROTO_TCP, tcpKeepIntvl, 5))
}

// errorWithin passes time until fd has an error, and returns the time that passed.
func (r *rig) errorWithin(p *Process, fd int, d time.Duration) time.Duration {
	r.t.Helper()
	begin := r.now
	for r.now.Sub(begin) < d {
		if p.Ready(fd)&eventloop.Error != 0 {
			return r.now.Sub(begin)
		}
		if !r.step(time.Second) {
			r.now = r.now.Add(time.Second)
		}
	}
	r.t.Fatalf("no error within %v\n%q", d, r.trace)
	return 0
}

func (r *rig) send(k *Stack, fd int, text string) {
	r.t.Helper()
	n, err := k.Send(fd, [][]byte{[]byte(text)}, 0)
	if n != len(text) || err != nil {
		r.t.Fatalf("sent %d, %v", n, err)
	}
}

func (r *rig) recv(k *Stack, fd int, want string) {
	r.t.Helper()
	b := make([]byte, 100)
	n, err := k.Recv(fd, b)
	if string(b[:n]) != want || err != nil {
		r.t.Fatalf("received %q, %v, want %q\n%q", b[:n], err, want, r.trace)
	}
}

func (r *rig) recvFails(k *Stack, fd int, want unix.Errno) {
	r.t.Helper()
	_, err := k.Recv(fd, make([]byte, 1))
	r.want(err, want)
}

// TestASilentPeerIsNoticed: however a peer falls silent, and whether or not an acknowledgement is
// pending, the connection ends with ETIMEDOUT after the time set by TCP_USER_TIMEOUT and keepalive.
func TestASilentPeerIsNoticed(t *testing.T) {
	silence := map[string]func(r *rig){
		"the peer is off":               func(r *rig) { r.b.PowerOff() },
		"nothing goes either way":       func(r *rig) { r.net.SetDown(r.a, r.b, true); r.net.SetDown(r.b, r.a, true) },
		"nothing gets there":            func(r *rig) { r.net.SetDown(r.a, r.b, true) },
		"nothing comes back":            func(r *rig) { r.net.SetDown(r.b, r.a, true) },
		"the peer has lost its address": func(r *rig) { r.b.RemoveAddr(addrB) },
		"its own address is gone":       func(r *rig) { r.a.RemoveAddr(netip.MustParseAddr("10.0.0.1")) },
	}
	for name, silent := range silence {
		for _, busy := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, busy %v", name, busy), func(t *testing.T) {
				r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
				a, _ := r.pair()
				r.tune(r.ka, a)
				silent(r)
				if busy {
					r.send(r.ka, a, "hello")
				}
				after := r.errorWithin(r.pa, a, time.Minute)
				if after < 20*time.Second || after > 40*time.Second {
					t.Errorf("noticed after %v", after)
				}
				r.recvFails(r.ka, a, unix.ETIMEDOUT)
			})
		}
	}
}

// TestAShortSilenceIsSurvived: data sent during the silence arrives later.
func TestAShortSilenceIsSurvived(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
	a, b := r.pair()
	r.tune(r.ka, a)
	r.tune(r.kb, b)
	for _, from := range []*Machine{r.a, r.b} { // first the data is lost, then its acknowledgement
		to := r.b
		if from == r.b {
			to = r.a
		}
		r.net.SetDown(from, to, true)
		r.send(r.ka, a, "hello")
		r.pass(10 * time.Second)
		if n, _ := r.ka.Unacknowledged(a); n != 5 {
			t.Fatalf("%d bytes are not acknowledged", n)
		}
		r.net.SetDown(from, to, false)
		r.pass(15 * time.Second)
		r.recv(r.kb, b, "hello")
		r.recvFails(r.kb, b, unix.EAGAIN)
		if n, _ := r.ka.Unacknowledged(a); n != 0 {
			t.Fatalf("%d bytes are not acknowledged", n)
		}
	}
	r.b.RemoveAddr(addrB)
	r.send(r.ka, a, "again")
	r.pass(5 * time.Second)
	r.b.AddAddr(prefix("10.0.0.2/24"))
	r.pass(10 * time.Second)
	r.recv(r.kb, b, "again")
}

// TestAClosedWindow: a peer that does not read stops the sender. With TCP_USER_TIMEOUT the sender
// gives up although the peer answers; without it, it waits forever.
func TestAClosedWindow(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}, MinBuffer: 1000})
	a, b := r.pair()
	fill := func() (sent int) {
		for {
			r.pass(time.Second)
			n, err := r.ka.Send(a, [][]byte{make([]byte, 700)}, 0)
			if errors.Is(err, unix.EAGAIN) {
				return sent
			}
			r.must(err)
			sent += n
		}
	}
	if n := fill(); n != 2000 {
		t.Fatalf("%d bytes fit into two buffers", n)
	}
	r.pass(24 * time.Hour)
	r.wantReady(r.pa, a, 0)
	for got := 0; got < 2000; r.pass(time.Second) {
		n, err := r.kb.Recv(b, make([]byte, 300))
		r.must(err)
		got += n
	}
	r.wantReady(r.pa, a, eventloop.Writable)
	fill()
	r.tune(r.ka, a)
	r.pass(time.Minute)
	r.wantReady(r.pa, a, broken)
	r.recvFails(r.ka, a, unix.ETIMEDOUT)
}

// TestARestartAnswersWithResets: a machine that was switched off knows nothing of its connections.
func TestARestartAnswersWithResets(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
	a, _ := r.pair()
	idle := r.socket(r.ka)
	l := r.listener(8, 1)
	r.want(r.ka.Connect(idle, sa(addrB, 8)), unix.EINPROGRESS)
	r.tune(r.ka, idle)
	r.pass(time.Second)
	r.send(r.ka, a, "on its way")
	r.b.PowerOff()
	if !r.pb.Dead() || len(r.b.Left()) != 0 {
		t.Errorf("processes live on: %v", r.b.Left())
	}
	r.want(r.kb.Close(l), unix.EBADF)
	r.pass(5 * time.Second)
	r.wantReady(r.pa, a, eventloop.Writable)
	r.b.PowerOn()
	r.pass(20 * time.Second)
	for _, fd := range []int{a, idle} {
		r.wantReady(r.pa, fd, broken)
		r.recvFails(r.ka, fd, unix.ECONNRESET)
	}
	r.kb = r.b.Process(Limits{}).Stack()
	r.listener(7, 1)
	again := r.socket(r.ka)
	r.want(r.ka.Connect(again, sa(addrB, 7)), unix.EINPROGRESS)
	r.pass(time.Second)
	r.wantReady(r.pa, again, eventloop.Writable)
}

// TestAForgottenConnectionMakesRoom: a client that was switched off connects again from the same
// port, while the server still has its old connection.
func TestAForgottenConnectionMakesRoom(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
	l := r.listener(7, 4)
	dial := func() int {
		fd := r.socket(r.ka)
		r.must(r.ka.Bind(fd, sa(netip.MustParseAddr("10.0.0.1"), 5000)))
		r.want(r.ka.Connect(fd, sa(addrB, 7)), unix.EINPROGRESS)
		return fd
	}
	dial()
	r.pass(time.Second)
	old, _, err := r.kb.Accept(l)
	r.must(err)
	r.a.PowerOff()
	r.a.PowerOn()
	r.pa = r.a.Process(Limits{})
	r.ka = r.pa.Stack()
	fd := dial()
	r.pass(3 * time.Second)
	r.wantReady(r.pb, old, broken)
	r.recvFails(r.kb, old, unix.ECONNRESET)
	r.wantReady(r.pa, fd, eventloop.Writable)
	r.wantReady(r.pb, l, eventloop.Readable)
}

// TestAKilledProcess: its machine closes everything. Peers see the end of the stream, or a reset if
// there was unread data.
func TestAKilledProcess(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
	a1, _ := r.pair()
	a2, b2 := r.pair()
	l := r.listener(9, 4)
	waiting := r.socket(r.ka)
	r.want(r.ka.Connect(waiting, sa(addrB, 9)), unix.EINPROGRESS)
	r.send(r.kb, b2, "last words")
	r.pass(time.Second)
	r.send(r.ka, a2, "unread")
	r.pass(time.Second)
	r.wantReady(r.pb, l, eventloop.Readable)
	r.pb.Kill()
	r.pass(time.Second)
	r.recv(r.ka, a1, "")
	r.recv(r.ka, a2, "last words")
	r.recvFails(r.ka, a2, unix.ECONNRESET)
	r.recvFails(r.ka, waiting, unix.ECONNRESET)
	if left := r.b.Left(); len(left) != 0 || !r.pb.Dead() {
		t.Errorf("left: %v", left)
	}
	_, err := r.kb.Socket(unix.AF_INET, unix.SOCK_STREAM)
	r.want(err, unix.EMFILE)
	r.want(r.kb.Close(l), unix.EBADF)
}

// TestConnectingToNobody: the errors of connect(2) without a listener, and when they are reported.
func TestConnectingToNobody(t *testing.T) {
	for _, c := range []struct {
		what  string
		to    string
		prep  func(r *rig)
		now   unix.Errno // of connect itself
		later unix.Errno
		after time.Duration
	}{
		{"nobody listens", "10.0.0.2", nil, 0, unix.ECONNREFUSED, 0},
		{"nobody has the address", "10.0.0.77", nil, 0, unix.EHOSTUNREACH, 3 * time.Second},
		{"the machine is off", "10.0.0.2", func(r *rig) { r.b.PowerOff() }, 0, unix.EHOSTUNREACH, 3 * time.Second},
		{"the link is down", "10.0.0.2", func(r *rig) { r.net.SetDown(r.a, r.b, true) }, 0, unix.ETIMEDOUT, 127 * time.Second},
		{"the answers are lost", "10.0.0.2", func(r *rig) { r.net.SetDown(r.b, r.a, true) }, 0, unix.ETIMEDOUT, 127 * time.Second},
		{"no route", "10.9.0.1", nil, unix.ENETUNREACH, 0, 0},
		{"a broadcast address", "10.0.0.255", nil, unix.ENETUNREACH, 0, 0},
		{"a group", "224.0.0.9", nil, unix.ENETUNREACH, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
			if c.prep != nil {
				c.prep(r)
			}
			fd := r.socket(r.ka)
			err := r.ka.Connect(fd, sa(netip.MustParseAddr(c.to), 7))
			if c.now != 0 {
				r.want(err, c.now)
				return
			}
			r.want(err, unix.EINPROGRESS)
			r.want(r.ka.Connect(fd, sa(addrB, 7)), unix.EALREADY)
			after := r.errorWithin(r.pa, fd, 3*time.Minute)
			if after < c.after || after > c.after+2*time.Second {
				t.Errorf("after %v, want %v", after, c.after)
			}
			n, err := r.ka.Option(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			r.must(err)
			r.want(unix.Errno(n), c.later)
		})
	}
}

// TestDescriptors: they are the lowest free ones, reused, and bounded.
func TestDescriptors(t *testing.T) {
	r := newRig(t, 1, Config{Files: 5})
	p := r.a.Process(Limits{Files: 6})
	k, other := p.Stack(), p.Stack()
	for i, k := range []*Stack{k, other, k} {
		if fd := r.socket(k); fd != firstFile+i {
			t.Fatalf("descriptor %d, want %d", fd, firstFile+i)
		}
	}
	_, err := k.Socket(unix.AF_INET, unix.SOCK_STREAM)
	r.want(err, unix.EMFILE)
	file := p.File(4)
	r.must(other.Close(4))
	if fd := r.socket(k); fd != 4 || p.File(4) == file {
		t.Fatalf("descriptor %d, file %d, which was %d before", fd, p.File(4), file)
	}
	r.socket(r.ka)
	r.socket(r.ka)
	_, err = r.ka.Socket(unix.AF_INET, unix.SOCK_STREAM)
	r.want(err, unix.ENFILE)
	if left := r.a.Left(); len(left) != 5 {
		t.Errorf("left: %q", left)
	}
	r.must(r.ka.Close(firstFile))
	r.socket(r.ka)
	if r.pa.Ready(99) != 0 || r.pa.File(99) != 0 {
		t.Error("a descriptor that was never open is ready")
	}
}

// TestCallsFail: each call fails as the Config specifies, and then has had no effect. Errnos has
// errnos for the calls that consult Fail.
func TestCallsFail(t *testing.T) {
	r := newRig(t, 1, Config{})
	l := r.listener(7, 1)
	a := r.socket(r.ka)
	r.want(r.ka.Connect(a, sa(addrB, 7)), unix.EINPROGRESS)
	r.pass(time.Second)
	var asked []string
	r.fail = func(_ *Machine, call string) unix.Errno {
		asked = append(asked, call)
		return unix.ENOBUFS
	}
	_, err := r.ka.Socket(unix.AF_INET, unix.SOCK_STREAM)
	r.want(err, unix.ENOBUFS)
	r.want(r.ka.Bind(a, sa(addrB, 9)), unix.ENOBUFS)
	r.want(r.kb.Listen(l, 9), unix.ENOBUFS)
	_, _, err = r.kb.Accept(l)
	r.want(err, unix.ENOBUFS)
	r.want(r.ka.Connect(a, sa(addrB, 9)), unix.ENOBUFS)
	_, err = r.ka.Send(a, [][]byte{{1}}, 0)
	r.want(err, unix.ENOBUFS)
	r.recvFails(r.ka, a, unix.ENOBUFS)
	r.want(r.ka.SetOption(a, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1), unix.ENOBUFS)
	if want := []string{"socket", "bind", "listen", "accept", "connect", "send", "recv", "setsockopt"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q", asked)
	}
	for _, call := range asked {
		if call != "listen" && len(Errnos(call)) == 0 {
			t.Errorf("no errnos for %s", call)
		}
	}
	if errnos := Errnos("close"); errnos != nil {
		t.Errorf("close fails with %v", errnos)
	}
	r.must(r.ka.Close(a))
	r.fail = nil
	r.pass(time.Second)
	b, _, err := r.kb.Accept(l)
	r.must(err)
	r.recv(r.kb, b, "")
}

// TestTimeWaitEnds: a connection's ports are free a minute after its end.
func TestTimeWaitEnds(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
	a, b := r.pair()
	sockaddr, err := r.ka.Local(a)
	r.must(err)
	port := sockaddr.(*unix.SockaddrInet4).Port
	r.must(r.ka.Close(a))
	r.pass(time.Second)
	r.must(r.kb.Close(b))
	r.pass(time.Second)
	bind := func() error {
		fd := r.socket(r.ka)
		defer r.ka.Close(fd)
		return r.ka.Bind(fd, sa(netip.MustParseAddr("10.0.0.1"), port))
	}
	r.want(bind(), unix.EADDRINUSE)
	r.pass(time.Minute)
	r.must(bind())
}

// TestNothingIsLeftOfAPeerThatNeverCloses: the closed half of a connection ends after a while.
func TestNothingIsLeftOfAPeerThatNeverCloses(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
	a, b := r.pair()
	r.must(r.ka.Close(a))
	r.pass(2 * time.Minute)
	r.wantReady(r.pb, b, eventloop.Readable|eventloop.Writable)
	r.send(r.kb, b, "anybody?")
	r.pass(time.Second)
	r.wantReady(r.pb, b, broken)
	if len(r.a.conns)+len(r.a.waits.table)+len(r.a.ports) != 0 {
		t.Errorf("left: %v %v %v", r.a.conns, r.a.waits.table, r.a.ports)
	}
	_, b = r.pair()
	r.net.SetDown(r.a, r.b, true)
	r.pa.Kill()
	r.pass(3 * time.Minute)
	if len(r.a.conns)+len(r.a.ports) != 0 {
		t.Errorf("left of a killed process: %v %v", r.a.conns, r.a.ports)
	}
	r.wantReady(r.pb, b, eventloop.Writable)
}

// TestOneSeedOneTrace: nothing but the Config decides what happens.
func TestOneSeedOneTrace(t *testing.T) {
	for seed := range uint64(30) {
		var traces [2][]string
		for i := range traces {
			w := draw(t, seed)
			w.run(nil)
			traces[i] = w.trace
		}
		if !slices.Equal(traces[0], traces[1]) {
			t.Fatalf("seed %d has two traces", seed)
		}
	}
}
