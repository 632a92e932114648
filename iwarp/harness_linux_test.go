package iwarp

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// patience bounds every wait of these tests; none of them measures time.
const patience = 20 * time.Second

// delivered is a copy of an event that a node got.
type delivered struct {
	h       cmid.Handle
	kind    states.Kind
	status  int32
	err     error
	child   cmid.Handle
	private string
	param   cmid.ConnParam
	polled  int // completions the node had when it was delivered
}

func (e delivered) String() string {
	return fmt.Sprintf("{id %d kind %d status %d %q child %d err %v}", e.h, e.kind, e.status, e.private, e.child, e.err)
}

// node is an instance on its own loop, which runs only when a test runs it.
type node struct {
	t      testing.TB
	loop   *eventloop.Loop
	inst   cmid.Instance
	in     *instance
	next   cmid.Handle
	events []delivered
	wcs    []verbs.WC
	cq     verbs.CQ
	notes  int
	onPoll func()
	react  func(delivered) // called inside Event, as an actor would be
}

// option sets a field of the device's Config.
type option func(*Config)

func newDriver(opts []option) *Driver {
	var cfg Config
	for _, o := range opts {
		o(&cfg)
	}
	return New(cfg)
}

func newNode(t testing.TB, opts ...option) *node {
	t.Helper()
	return newNodeOf(t, newDriver(opts))
}

// newNodeOf makes another loop of d.
func newNodeOf(t testing.TB, d *Driver) *node {
	t.Helper()
	return newNodeLogging(t, d, nil)
}

// newNodeLogging does what newNodeOf does, with a log.
func newNodeLogging(t testing.TB, d *Driver, log *slog.Logger) *node {
	t.Helper()
	l, err := eventloop.New(eventloop.Config{Name: "test", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, loop: l}
	n.inst, err = d.Open(l, n)
	if err != nil {
		t.Fatal(err)
	}
	n.in = n.inst.(*instance)
	n.cq, err = n.in.dev.CreateCQ(64, n.poll)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.inst.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := l.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return n
}

func (n *node) poll() {
	n.notes++
	if n.onPoll != nil {
		n.onPoll()
	}
	var wc [16]verbs.WC
	for {
		k := n.cq.Poll(wc[:])
		if k == 0 {
			return
		}
		n.wcs = append(n.wcs, wc[:k]...)
	}
}

func (n *node) NewHandle() cmid.Handle { n.next++; return n.next }

func (n *node) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	e := delivered{h: h, kind: ev.Kind, status: ev.Status, err: ev.Err, private: string(ev.PrivateData), param: ev.Param, polled: len(n.wcs)}
	if ev.Child != nil {
		e.child = ev.Child.Handle()
	}
	n.events = append(n.events, e)
	if n.react != nil {
		n.react(e)
	}
}

func (n *node) Done(cmid.Handle, error) { n.t.Error("Done without ErrPending") }

// turns runs the nodes' loops until done returns true.
func turns(t testing.TB, what string, done func() bool, nodes ...*node) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			for i, n := range nodes {
				t.Logf("node %d: events %v, completions %v", i, n.events, n.wcs)
			}
			t.Fatalf("%s: not within %v", what, patience)
		}
		for _, n := range nodes {
			if err := n.loop.Turn(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// id makes an identifier.
func (n *node) id() cmid.Handle {
	n.t.Helper()
	h := n.NewHandle()
	if _, err := n.inst.CreateID(h, cmid.PortSpaceTCP, cmid.QPTypeRC); err != nil {
		n.t.Fatal(err)
	}
	return h
}

func (n *node) do(h cmid.Handle, cmd cmid.Command) {
	n.t.Helper()
	if err := n.in.ids[h].Do(cmd); err != nil {
		n.t.Fatalf("%v on %d: %v", cmd.Op(), h, err)
	}
}

// found returns the first event of that kind for h.
func (n *node) found(h cmid.Handle, k states.Kind) *delivered {
	for i := range n.events {
		if e := &n.events[i]; e.h == h && e.kind == k {
			return e
		}
	}
	return nil
}

// wait runs the loops until k was delivered for h.
func (n *node) wait(h cmid.Handle, k states.Kind, others ...*node) delivered {
	n.t.Helper()
	turns(n.t, fmt.Sprintf("event %d for id %d", k, h), func() bool { return n.found(h, k) != nil }, append(others, n)...)
	return *n.found(h, k)
}

// listen makes a listener and returns its address.
func (n *node) listen(addr string) (cmid.Handle, cmid.Addr) {
	n.t.Helper()
	h := n.id()
	n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr(addr)})
	n.do(h, &cmid.Listen{})
	return h, n.in.ids[h].Info().Local
}

// qp makes a queue pair with that many receives of 4096 bytes posted.
func (n *node) qp(h cmid.Handle, recvs int) *testQP {
	n.t.Helper()
	q := &testQP{n: n}
	var err error
	q.QP, err = n.in.ids[h].CreateQP(verbs.QPInitAttr{SendCQ: n.cq, RecvCQ: n.cq, MaxSendWR: 1024, MaxRecvWR: 1024, Context: h})
	if err != nil {
		n.t.Fatal(err)
	}
	q.in, err = n.in.dev.Alloc(max(1, recvs)*4096, verbs.LocalWrite)
	if err != nil {
		n.t.Fatal(err)
	}
	for i := range recvs {
		q.recv(i)
	}
	return q
}

type testQP struct {
	verbs.QP
	n  *node
	in *verbs.MR
}

func (q *testQP) recv(i int) {
	q.n.t.Helper()
	if err := q.PostRecv(verbs.RecvWR{ID: uint64(i), SGE: verbs.SGE{MR: q.in, Offset: uint32(i) * 4096, Length: 4096}}); err != nil {
		q.n.t.Fatal(err)
	}
}

// send posts a message from registered memory.
func (q *testQP) send(id uint64, msg string) {
	q.n.t.Helper()
	mr, err := q.n.in.dev.Alloc(max(1, len(msg)), 0)
	if err != nil {
		q.n.t.Fatal(err)
	}
	copy(mr.Bytes, msg)
	wr := verbs.SendWR{ID: id, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: mr, Length: uint32(len(msg))}}}
	if err := q.PostSend(&wr); err != nil {
		q.n.t.Fatal(err)
	}
}

// got returns the text of a completed receive.
func (q *testQP) got(wc verbs.WC) string { return string(q.in.Bytes[wc.ID*4096:][:wc.Bytes]) }

// resolve makes an identifier that can connect.
func (n *node) resolve(dst cmid.Addr) cmid.Handle {
	n.t.Helper()
	h := n.id()
	n.do(h, &cmid.ResolveAddr{Dst: dst})
	n.wait(h, states.KindAddrResolved)
	n.do(h, &cmid.ResolveRoute{})
	n.wait(h, states.KindRouteResolved)
	return h
}

// pair is an established connection.
type pair struct {
	client, server *node
	ch, sh, lh     cmid.Handle
	cq, sq         *testQP
}

func connect(t testing.TB, client, server *node, recvs int) *pair {
	t.Helper()
	lh, addr := server.listen("127.0.0.1:0")
	return connectTo(t, client, server, lh, addr, recvs)
}

func connectTo(t testing.TB, client, server *node, lh cmid.Handle, addr cmid.Addr, recvs int) *pair {
	t.Helper()
	p := &pair{client: client, server: server, lh: lh}
	p.ch = client.resolve(addr)
	p.cq = client.qp(p.ch, recvs)
	client.do(p.ch, &cmid.Connect{PrivateData: []byte("hello")})
	have := len(server.events)
	turns(t, "connect request", func() bool { return len(server.events) > have }, client, server)
	req := server.events[have]
	if req.kind != states.KindConnectRequest || req.private != "hello" {
		t.Fatalf("want a ConnectRequest with %q, got %v", "hello", req)
	}
	p.sh = req.child
	p.sq = server.qp(p.sh, recvs)
	server.do(p.sh, &cmid.Accept{PrivateData: []byte("welcome")})
	client.wait(p.ch, states.KindEstablished, server)
	server.wait(p.sh, states.KindEstablished, client)
	return p
}

// fds counts this process's file descriptors.
func fds(t testing.TB) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// inEmptyNamespace runs fn on a thread with its own network namespace. The thread is not used
// again.
func inEmptyNamespace(errs chan<- error, fn func() error) {
	runtime.LockOSThread() // never unlocked
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		errs <- err
		return
	}
	errs <- fn()
}

func qpAttr(n *node) verbs.QPInitAttr {
	return verbs.QPInitAttr{SendCQ: n.cq, RecvCQ: n.cq, MaxSendWR: 16, MaxRecvWR: 16}
}
