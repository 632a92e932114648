package cmidtest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

const (
	tcp = cmid.PortSpaceTCP
	udp = cmid.PortSpaceUDP
)

// side is a separate loop, run by the test: a program on a host.
type side struct {
	t       *testing.T
	l       *eventloop.Loop
	ch      *cmid.Channel
	events  []delivered
	onEvent func(delivered)
}

// delivered is an event as its owner got it.
type delivered struct {
	id      *cmid.ID
	ev      cmid.Event
	answers cmid.Command
}

// newSide opens a driver on a loop that runs on its own goroutine, in the bubble's time.
func newSide(t *testing.T, d cmid.Driver) *side {
	t.Helper()
	l, err := eventloop.New(eventloop.Config{Poller: eventlooptest.NewPoller()})
	if err != nil {
		t.Fatal(err)
	}
	s := &side{t: t, l: l}
	if s.ch, err = cmid.NewChannel(l, d, s.sink); err != nil {
		t.Fatal(err)
	}
	l.Start()
	return s
}

func (s *side) sink(id *cmid.ID, ev cmid.Event, answers *cmid.Pending) {
	e := delivered{id: id, ev: ev}
	if answers.Answer(ev) {
		e.answers = answers.Command
	}
	s.events = append(s.events, e)
	if s.onEvent != nil {
		s.onEvent(e)
	}
}

// do runs fn on the loop and waits until nothing moves.
func (s *side) do(fn func()) {
	s.t.Helper()
	done := false
	if err := s.l.Post(func() { fn(); done = true }); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	if !done {
		s.t.Fatal("the loop did not run it")
	}
}

func (s *side) must(fn func() error) {
	s.t.Helper()
	s.do(func() {
		if err := fn(); err != nil {
			s.t.Error(err)
		}
	})
}

func (s *side) create(ps cmid.PortSpace) (id *cmid.ID) {
	s.t.Helper()
	s.must(func() (err error) { id, err = s.ch.CreateID(ps); return err })
	return id
}

// take takes the events delivered so far.
func (s *side) take() []delivered {
	var ev []delivered
	s.do(func() { ev, s.events = s.events, nil })
	return ev
}

// only returns the one event since the last take.
func only[E cmid.Event](s *side) (e E, id *cmid.ID) {
	s.t.Helper()
	ev := s.take()
	if len(ev) != 1 {
		s.t.Fatalf("%d events, want one %T: %v", len(ev), e, ev)
	}
	e, ok := ev[0].ev.(E)
	if !ok {
		s.t.Fatalf("event %T (%v), want %T", ev[0].ev, ev[0].ev, e)
	}
	return e, ev[0].id
}

func (s *side) close() {
	s.t.Helper()
	s.must(s.ch.Close)
	if err := s.l.Shutdown(s.t.Context()); err != nil {
		s.t.Error(err)
	}
}

// queues is a queue pair with its objects.
type queues struct {
	qp verbs.QP
	cq verbs.CQ
	mr *verbs.MR
	wc []verbs.WC
}

func (s *side) queues(id *cmid.ID, recvs int) *queues {
	s.t.Helper()
	q := &queues{}
	s.must(func() (err error) {
		dev := id.Device()
		if q.mr, err = dev.Alloc(1<<16, verbs.LocalWrite); err != nil {
			return err
		}
		if q.cq, err = dev.CreateCQ(64, q.poll); err != nil {
			return err
		}
		q.qp, err = id.CreateQP(verbs.QPInitAttr{SendCQ: q.cq, RecvCQ: q.cq, MaxSendWR: 16, MaxRecvWR: 16})
		for i := range recvs {
			err = errors.Join(err, q.recv(i, 64))
		}
		return err
	})
	return q
}

func (q *queues) poll() {
	var wc [4]verbs.WC
	for {
		n := q.cq.Poll(wc[:])
		if n == 0 {
			return
		}
		q.wc = append(q.wc, wc[:n]...)
	}
}

func (q *queues) recv(i, n int) error {
	return q.qp.PostRecv(verbs.RecvWR{ID: uint64(100 + i), SGE: verbs.SGE{MR: q.mr, Offset: uint32(i * 64), Length: uint32(n)}})
}

func (q *queues) send(id uint64, s string) error {
	return q.qp.PostSend(&verbs.SendWR{ID: id, Flags: verbs.Signaled, Inline: []byte(s)})
}

// pair is a connection between two hosts.
type pair struct {
	f                 *Fabric
	a, b              *side
	listener          *cmid.ID
	active, passive   *cmid.ID
	activeQ, passiveQ *queues
}

const (
	addrA = "10.0.0.5"
	addrB = "10.0.0.7"
	dstB  = addrB + ":7471"
)

func network(t *testing.T, flavor states.Flavor) (*Fabric, *side, *side) {
	f := NewFabric(Config{Flavor: flavor, Seed: 1})
	f.Host("a").AddDevice("mem0", addrA)
	f.Host("b").AddDevice("mem1", addrB)
	return f, newSide(t, f.Host("a").Driver()), newSide(t, f.Host("b").Driver())
}

// resolve brings a new identifier of s to RouteResolved.
func (s *side) resolve(ps cmid.PortSpace, dst string) *cmid.ID {
	s.t.Helper()
	id := s.create(ps)
	s.must(func() error { return id.ResolveAddr(cmid.Addr{}, cmid.MustAddr(dst), time.Second) })
	only[*cmid.AddrResolved](s)
	s.must(func() error { return id.ResolveRoute(time.Second) })
	only[*cmid.RouteResolved](s)
	return id
}

func (s *side) listen(ps cmid.PortSpace, addr string, backlog int) *cmid.ID {
	s.t.Helper()
	id := s.create(ps)
	s.must(func() error { return id.BindAddr(cmid.MustAddr(addr)) })
	s.must(func() error { return id.Listen(backlog) })
	return id
}

func connected(t *testing.T, flavor states.Flavor) *pair {
	t.Helper()
	f, a, b := network(t, flavor)
	p := &pair{f: f, a: a, b: b}
	p.listener = b.listen(cmid.PortSpaceTCP, "0.0.0.0:7471", 0)
	p.active = a.resolve(cmid.PortSpaceTCP, dstB)
	p.activeQ = a.queues(p.active, 4)
	a.must(func() error { return p.active.Connect([]byte("hi"), nil) })
	_, p.passive = only[*cmid.ConnectRequest](b)
	p.passiveQ = b.queues(p.passive, 4)
	b.must(func() error { return p.passive.Accept([]byte("ho"), nil) })
	only[*cmid.Established](a)
	only[*cmid.Established](b)
	return p
}

func (p *pair) close() {
	p.a.close()
	p.b.close()
}

// flavors runs a test as InfiniBand and as iWARP.
func flavors(t *testing.T, fn func(t *testing.T, flavor states.Flavor)) {
	for name, f := range map[string]states.Flavor{"InfiniBand": 0, "iWARP": states.IWARP} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { fn(t, f) }) })
	}
}

func TestConnectSendDisconnectDestroy(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		p := connected(t, flavor)
		defer p.close()
		p.a.must(func() error { return errors.Join(p.activeQ.send(1, "one"), p.activeQ.send(2, "two")) })
		got := p.passiveQ.wc
		if len(got) != 2 || got[0].ID != 100 || got[1].ID != 101 || got[0].Bytes != 3 || string(p.passiveQ.mr.Bytes[64:67]) != "two" {
			t.Fatalf("receives %+v", got)
		}
		if sent := p.activeQ.wc; len(sent) != 2 || sent[0].ID != 1 || sent[1].Status != verbs.StatusSuccess {
			t.Fatalf("sends %+v", sent)
		}
		p.a.must(p.active.Disconnect)
		only[*cmid.Disconnected](p.b)
		if flavor == 0 {
			if ev := p.a.take(); len(ev) != 0 {
				t.Errorf("events %v before the peer has answered", ev)
			}
			p.b.must(p.passive.Disconnect)
		}
		only[*cmid.Disconnected](p.a)
		if n := len(p.activeQ.wc); n != 6 {
			t.Errorf("%d completions in all, want 2 sends and 4 receives flushed", n)
		}
		time.Sleep(time.Minute)
		if flavor == 0 {
			only[*cmid.TimewaitExit](p.a)
			only[*cmid.TimewaitExit](p.b)
		}
		p.a.must(p.active.Destroy)
		p.b.must(p.passive.Destroy)
		if p.a.ch.Len() != 0 || p.b.ch.Len() != 1 {
			t.Errorf("%d and %d identifiers left", p.a.ch.Len(), p.b.ch.Len())
		}
	})
}

func TestSilenceTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, a, b := network(t, 0)
		defer b.close()
		defer a.close()
		f.Silence("10.0.0.9")
		id := a.create(cmid.PortSpaceTCP)
		begin := time.Now()
		a.must(func() error { return id.ResolveAddr(cmid.Addr{}, cmid.MustAddr("10.0.0.9:7471"), 2*time.Second) })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		e, _ := only[*cmid.AddrError](a)
		if !errors.Is(e, unix.ETIMEDOUT) || time.Since(begin) != 2*time.Second || id.State() != states.Bound {
			t.Errorf("%v after %v, state %v", e, time.Since(begin), id.State())
		}
	})
}

// TestResolvedPortIsClaimed: from AddrResolved on an identifier has its port on the address that it
// resolved from only, as with the kernel: others may have the port on the host's other addresses.
// The embedded device's socket stays bound to all addresses.
func TestResolvedPortIsClaimed(t *testing.T) {
	const other = "10.0.0.6"
	for name, cfg := range map[string]Config{
		"InfiniBand": {}, "iWARP": {Flavor: states.IWARP}, "embedded": {Flavor: states.IWARP, Embedded: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg.Seed = 1
				f := NewFabric(cfg)
				f.Host("a").AddDevice("mem0", addrA, other)
				f.Host("b").AddDevice("mem1", addrB)
				a := newSide(t, f.Host("a").Driver())
				defer a.close()
				id := a.create(tcp)
				a.must(func() error { return id.BindAddr(cmid.MustAddr("0.0.0.0:7000")) })
				bind := func(when, addr string, want error) {
					t.Helper()
					next := a.create(tcp)
					a.do(func() {
						if err := next.BindAddr(cmid.MustAddr(addr)); !errors.Is(err, want) {
							t.Errorf("%s another binds to %s: %v, want %v", when, addr, err, want)
						}
					})
					a.must(next.Destroy)
				}
				for _, addr := range []string{addrA + ":7000", other + ":7000", "0.0.0.0:7000"} {
					bind("before it resolves", addr, unix.EADDRINUSE)
				}
				a.must(func() error { return id.ResolveAddr(cmid.Addr{}, cmid.MustAddr(dstB), time.Second) })
				only[*cmid.AddrResolved](a)
				var free error
				if name == "embedded" {
					free = unix.EADDRINUSE
				}
				bind("when it has resolved", addrA+":7000", unix.EADDRINUSE)
				bind("when it has resolved", other+":7000", free)
				bind("when it has resolved", "0.0.0.0:7000", unix.EADDRINUSE)
				a.must(id.Destroy)
				bind("when it has gone", "0.0.0.0:7000", nil)
			})
		})
	}
}
