package network

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// end is one end of a connection that does random things.
type end struct {
	name     string
	k        *Stack
	p        *Process
	fd       int
	key      byte // the byte at position i is byte(i)*key
	sent     int
	toSend   int
	shut     bool // its FIN is queued: everything is sent
	got      int
	eof      bool
	err      error // the error that has ended it
	closed   bool
	unread   bool // it closed before reading everything
	impolite bool // it may close early
}

// world is a random program: two machines, some connections, and perhaps faults.
type world struct {
	*rig
	seed   uint64
	ends   [][2]*end
	faulty bool // a fault has affected the network
	eintr  bool // calls fail occasionally
}

func (w *world) fatal(format string, args ...any) {
	w.t.Helper()
	n := max(0, len(w.trace)-40)
	for _, line := range w.trace[n:] {
		w.t.Log(line)
	}
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

// draw makes a world from a seed.
func draw(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 2))
	pick := func(choices ...int) int { return choices[r.IntN(len(choices))] }
	link := Link{
		Delay:  time.Duration(pick(0, 1, 50, 3000)) * 100 * time.Microsecond,
		Jitter: time.Duration(pick(0, 0, 1, 100)) * 100 * time.Microsecond,
		Loss:   float64(pick(0, 0, 1, 20)) / 100,
		MSS:    pick(0, 1, 100, 1460),
	}
	least := pick(1, 10, 1000, 60000)
	cfg := Config{
		Link: link, Short: float64(pick(0, 10, 50)) / 100,
		MinBuffer: least, MaxBuffer: least * pick(1, 1, 10), LowPort: 100, Ports: pick(4, 1000),
	}
	w := &world{rig: newRig(t, seed, cfg), seed: seed}
	if w.eintr = r.IntN(4) == 0; w.eintr {
		w.fail = w.interrupt
	}
	l := w.listener(7, 8)
	w.keepAlive(w.kb, l)
	for i := range 1 + r.IntN(3) {
		most := min(pick(10, 500, 50000), 20*least)
		if link.MSS > 0 {
			most = min(most, 20*link.MSS)
		}
		pair := [2]*end{}
		for j := range pair {
			pair[j] = &end{
				name: fmt.Sprintf("%c%d", 'a'+j, i), fd: -1, key: byte(r.IntN(100)*2 + 1), toSend: r.IntN(most + 1),
				impolite: r.IntN(6) == 0, k: w.ka, p: w.pa,
			}
		}
		pair[1].k, pair[1].p = w.kb, w.pb
		w.ends = append(w.ends, pair)
		w.connect(pair, l)
	}
	w.retry(func() error { return w.kb.Close(l) })
	return w
}

// keepAlive makes a socket notice that its peer is gone.
func (w *world) keepAlive(k *Stack, fd int) {
	w.must(k.SetOption(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1))
	w.must(k.SetOption(fd, unix.IPPROTO_TCP, tcpKeepIdle, 30))
	w.must(k.SetOption(fd, unix.IPPROTO_TCP, tcpKeepIntvl, 10))
	if w.rand.IntN(2) == 0 {
		w.must(k.SetOption(fd, unix.IPPROTO_TCP, tcpUserTimeout, 60000))
	}
}

// interrupt makes calls fail that their callers simply repeat.
func (w *world) interrupt(_ *Machine, call string) unix.Errno {
	if (call == "send" || call == "recv") && w.rand.IntN(5) == 0 {
		return []unix.Errno{unix.EINTR, unix.EAGAIN}[w.rand.IntN(2)]
	}
	return 0
}

func (w *world) retry(call func() error) {
	w.t.Helper()
	if err := call(); err != nil {
		w.fatal("%v", err)
	}
}

func (w *world) connect(pair [2]*end, l int) {
	fd := w.socket(w.ka)
	pair[0].fd = fd
	w.keepAlive(w.ka, fd)
	if err := w.ka.Connect(fd, sa(addrB, 7)); !errors.Is(err, unix.EINPROGRESS) {
		w.fatal("connect: %v", err)
	}
	for range 10000 {
		if w.pb.Ready(l) != 0 {
			var err error
			if pair[1].fd, _, err = w.kb.Accept(l); err != nil {
				w.fatal("accept: %v", err)
			}
			if ev := w.pa.Ready(fd); ev != eventloop.Writable {
				w.fatal("connected, and ready for %v", ev)
			}
			return
		}
		if !w.step(time.Hour) {
			break
		}
	}
	w.fatal("no connection")
}

// act makes one end do something.
func (w *world) act(e, peer *end) {
	if e.fd < 0 {
		return
	}
	switch w.rand.IntN(8) {
	case 0, 1, 2:
		w.write(e, peer)
	case 3, 4, 5, 6:
		w.read(e, peer)
	case 7:
		if e.sent == e.toSend && !e.shut && e.err == nil {
			e.shut = true
			w.retry(func() error {
				if err := e.k.Shutdown(e.fd, unix.SHUT_WR); !errors.Is(err, unix.ENOTCONN) {
					return err
				}
				return nil // it was reset
			})
		}
		if e.over() || e.impolite && w.rand.IntN(30) == 0 {
			e.closed, e.unread = true, !e.eof
			w.retry(func() error { return e.k.Close(e.fd) })
			e.fd = -1
		}
	}
}

// over reports whether the end has nothing more to do.
func (e *end) over() bool { return e.err != nil || e.shut && e.eof }

func (w *world) write(e, peer *end) {
	if e.shut || e.err != nil || e.sent == e.toSend {
		return
	}
	b := make([]byte, 1+w.rand.IntN(e.toSend-e.sent))
	for i := range b {
		b[i] = byte(e.sent+i) * e.key
	}
	ready := e.p.Ready(e.fd)
	n, err := e.k.Send(e.fd, [][]byte{b[:len(b)/2], nil, b[len(b)/2:]}, 0)
	switch {
	case errors.Is(err, unix.EINTR), err != nil && w.eintr && errors.Is(err, unix.EAGAIN):
	case errors.Is(err, unix.EAGAIN):
		if ready&eventloop.Writable != 0 {
			w.fatal("%s is %v, but has no room", e.name, ready)
		}
	case err != nil:
		w.ended(e, peer, err)
	default:
		e.sent += n
		if n == 0 {
			w.fatal("%s: sent nothing", e.name)
		}
	}
}

func (w *world) read(e, peer *end) {
	if e.eof || e.err != nil {
		return
	}
	b := make([]byte, 1+w.rand.IntN(5000))
	ready := e.p.Ready(e.fd)
	n, err := e.k.Readv(e.fd, [][]byte{b[:len(b)/3], b[len(b)/3:]})
	switch {
	case errors.Is(err, unix.EINTR), err != nil && w.eintr && errors.Is(err, unix.EAGAIN):
	case errors.Is(err, unix.EAGAIN):
		if ready&^eventloop.Writable != 0 {
			w.fatal("%s is %v, but there is nothing to read", e.name, ready)
		}
	case err != nil:
		w.ended(e, peer, err)
	case ready&eventloop.Readable == 0:
		w.fatal("%s was %v, but %d bytes could be read", e.name, ready, n)
	case n == 0:
		e.eof = true
		if !peer.shut && !peer.closed || e.got != peer.sent {
			w.fatal("%s: end after %d bytes; peer has sent %d (shut %v, closed %v)", e.name, e.got, peer.sent, peer.shut, peer.closed)
		}
	default:
		for i, c := range b[:n] {
			if c != byte(e.got+i)*peer.key {
				w.fatal("%s: byte %d is wrong", e.name, e.got+i)
			}
		}
		if e.got += n; e.got > peer.sent {
			w.fatal("%s has %d bytes, peer has sent %d", e.name, e.got, peer.sent)
		}
	}
}

// ended checks an error.
func (w *world) ended(e, peer *end, err error) {
	e.err = err
	allowed := peer.unread && (errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE))
	allowed = allowed || w.faulty && (errors.Is(err, unix.ETIMEDOUT) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE))
	if !allowed {
		w.fatal("%s: %v, and nobody has done anything", e.name, err)
	}
}

// run runs events until all ends are over.
func (w *world) run(fault func()) {
	for range 400000 {
		busy := false
		for _, pair := range w.ends {
			for i, e := range pair {
				if e.fd >= 0 {
					busy = true
					if w.rand.IntN(2) == 0 {
						w.act(e, pair[1-i])
					}
				}
			}
		}
		if !busy {
			w.rest()
			return
		}
		if fault != nil {
			fault()
		}
		if w.idle() {
			w.step(time.Hour)
		} else if !w.step(0) {
			w.now = w.now.Add(time.Millisecond)
		}
	}
	for _, pair := range w.ends {
		for _, e := range pair {
			w.t.Logf("%+v ready %v", *e, e.p.Ready(e.fd))
		}
	}
	w.fatal("it does not end")
}

// idle reports whether all ends can only wait.
func (w *world) idle() bool {
	for _, pair := range w.ends {
		for _, e := range pair {
			want := eventloop.Error
			if !e.eof {
				want |= eventloop.Readable | eventloop.Hangup
			}
			if e.sent < e.toSend {
				want |= eventloop.Writable
			}
			if e.fd >= 0 && (e.over() || e.p.Ready(e.fd)&want != 0 || e.sent == e.toSend && !e.shut) {
				return false
			}
		}
	}
	return true
}

// rest checks that nothing is left.
func (w *world) rest() {
	for range 100000 {
		if !w.step(24 * time.Hour) {
			break
		}
	}
	w.now = w.now.Add(time.Hour)
	if n := w.net.InFlight(); n != 0 {
		w.fatal("%d bytes in flight", n)
	}
	for _, m := range []*Machine{w.a, w.b} {
		m.waits.removeExpired(m.now())
		if len(m.Left())+len(m.conns)+len(m.ports)+len(m.waits.table)+len(m.waits.order)+m.files+m.stray != 0 {
			w.fatal("%s has left: %v, %d connections, ports %v, %d waits", m.name, m.Left(), len(m.conns), m.ports, len(m.waits.table))
		}
	}
	if due, ok := w.net.Next(); ok {
		w.fatal("an event is left for %v", due)
	}
}

// seeds is how many random programs each test plays.
const seeds = 300

func TestRandomProgramsLoseNothing(t *testing.T) {
	for seed := range uint64(seeds) {
		draw(t, seed).run(nil)
	}
}

func TestRandomProgramsAndFaults(t *testing.T) {
	for seed := range uint64(seeds) {
		w := draw(t, seed+1e6)
		faults := 1 + w.rand.IntN(4)
		w.run(func() {
			if faults > 0 && w.rand.IntN(50) == 0 {
				faults--
				w.fault(faults == 0)
			}
		})
	}
}

// fault changes the network. The last one restores it.
func (w *world) fault(last bool) {
	w.faulty = true
	m, o := w.a, w.b
	if w.rand.IntN(2) == 0 {
		m, o = o, m
	}
	down := w.rand.IntN(2) == 0 && !last
	w.trace = append(w.trace, "FAULT")
	switch w.rand.IntN(4) {
	case 0:
		w.net.SetDown(m, o, down)
	case 1:
		w.net.SetDown(m, o, down)
		w.net.SetDown(o, m, down)
	case 2:
		if list := m.Connections(); len(list) > 0 {
			list[w.rand.IntN(len(list))].Reset()
		}
	case 3:
		if p := m.Addrs()[0]; p.Addr().Is4() && down {
			m.RemoveAddr(p.Addr())
		}
	}
	if last {
		w.net.SetDown(m, o, false)
		w.net.SetDown(o, m, false)
	}
	if !down {
		w.a.AddAddr(prefix("10.0.0.1/24"))
		w.b.AddAddr(prefix("10.0.0.2/24"))
	}
}
