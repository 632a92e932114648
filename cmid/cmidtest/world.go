package cmidtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// world is a rig with its two loops, turned by the test's goroutine.
type world struct {
	*testing.T
	r            *run
	rig          Rig
	iwarp        bool
	a, b         *end // active, passive
	port         uint16
	realDeadline time.Duration
}

// end is one side: a channel on a loop.
type end struct {
	w     *world
	name  string
	l     *eventloop.Loop
	ch    *cmid.Channel
	heard []heard
	then  func(heard) // when something is heard
}

// heard is an event that was told.
type heard struct {
	id      *cmid.ID
	ev      cmid.Event
	answers cmid.Command
}

func (r *run) world(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, r: r, rig: r.open(t), realDeadline: 15 * time.Second}
	w.a = w.end("active", w.rig.Active)
	w.b = w.end("passive", w.rig.Passive)
	w.iwarp = w.a.ch.Flavor()&states.IWARP != 0
	t.Cleanup(func() {
		for _, e := range []*end{w.a, w.b} {
			if err := errors.Join(e.ch.Close(), e.l.Shutdown(context.Background())); err != nil {
				t.Error(err)
			}
		}
	})
	return w
}

func (w *world) end(name string, d cmid.Driver) *end {
	w.Helper()
	e := &end{w: w, name: name}
	cfg := eventloop.Config{Name: name}
	if w.rig.Clock != nil {
		cfg.Clock, cfg.Poller = w.rig.Clock, eventlooptest.NewPollerOn(w.rig.Clock)
	}
	var err error
	if e.l, err = eventloop.New(cfg); err != nil {
		w.Fatal(err)
	}
	if e.ch, err = cmid.NewChannel(e.l, d, func(id *cmid.ID, ev cmid.Event, answers cmid.Command) {
		e.heard = append(e.heard, heard{id, ev, answers})
		if e.then != nil {
			e.then(e.heard[len(e.heard)-1])
		}
	}); err != nil {
		w.Fatal(err)
	}
	return e
}

// differs says that the driver is known to deviate here, and notes that it shows.
func (w *world) differs(what What) bool {
	for _, d := range w.rig.Differences {
		if d.What == what {
			w.r.used[what] = true
			return true
		}
	}
	return false
}

// How long virtual time may pass: longer than any of a device's clocks.
const (
	virtualDeadline = 5 * time.Minute
	virtualStep     = 50 * time.Millisecond
	turnsPerStep    = 6
	quietFor        = 30 * time.Millisecond
)

// turn lets both loops do what there is to do now.
func (w *world) turn() {
	w.Helper()
	for range turnsPerStep {
		for _, e := range []*end{w.a, w.b} {
			if err := e.l.Turn(); err != nil {
				w.Fatalf("%s: %v", e.name, err)
			}
		}
	}
}

// until waits for cond, in the drivers' time.
func (w *world) until(what string, cond func() bool) {
	w.Helper()
	if !w.within(virtualDeadline, w.realDeadline, cond) {
		w.Fatalf("waited in vain for %s; active heard %v, passive %v", what, w.a.told(), w.b.told())
	}
}

func (w *world) within(virtual, real time.Duration, cond func() bool) bool {
	w.Helper()
	if w.rig.Clock != nil {
		for passed := time.Duration(0); ; passed += virtualStep {
			w.turn()
			if cond() {
				return true
			}
			if passed >= virtual {
				return false
			}
			w.rig.Clock.Advance(virtualStep)
		}
	}
	for deadline := time.Now().Add(real); ; {
		w.turn()
		if cond() {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		w.waitReal(left)
	}
}

// waitReal waits until one of the loops has something to do.
func (w *world) waitReal(d time.Duration) {
	w.Helper()
	var fds []unix.PollFd
	for _, e := range []*end{w.a, w.b} {
		fd, err := e.l.FD()
		if err != nil {
			w.Fatal(err)
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if _, err := unix.Poll(fds, int(d/time.Millisecond)+1); err != nil && !errors.Is(err, unix.EINTR) {
		w.Fatal(err)
	}
}

// settle lets happen what happens by itself, without waiting for timers.
func (w *world) settle() {
	w.Helper()
	w.within(0, quietFor, func() bool { return false })
}

// told describes what was heard and not expected yet.
func (e *end) told() []string {
	var out []string
	for _, h := range e.heard {
		out = append(out, fmt.Sprintf("%v(%d) on %d", h.ev.Kind(), status(h.ev), h.id.Handle()))
	}
	return out
}

// status is an event's.
func status(ev cmid.Event) int32 {
	switch ev := ev.(type) {
	case *cmid.Rejected:
		return ev.Status
	case *cmid.Unreachable:
		return ev.Status
	case *cmid.AddrError:
		return ev.Status
	case *cmid.RouteError:
		return ev.Status
	case *cmid.ConnectError:
		return ev.Status
	case *cmid.Disconnected:
		return ev.Status
	case *cmid.CommandFailed:
		return ev.Status
	}
	return 0
}

// quiet holds that nothing is told, after everything that happens by itself has happened.
func (w *world) quiet(why string) {
	w.Helper()
	w.settle()
	for _, e := range []*end{w.a, w.b} {
		if len(e.heard) > 0 {
			w.Errorf("%s: the %s side was told %v", why, e.name, e.told())
			e.heard = nil
		}
	}
}

// next waits for the end's next event, which must be an E of id; nil stands for any.
func next[E cmid.Event](e *end, id *cmid.ID) E {
	e.w.Helper()
	var want E
	e.w.until(fmt.Sprintf("%T on the %s side", want, e.name), func() bool { return len(e.heard) > 0 })
	h := e.heard[0]
	e.heard = e.heard[1:]
	got, ok := h.ev.(E)
	if !ok || id != nil && h.id != id {
		e.w.Fatalf("the %s side was told %v of %d: %+v; want %T", e.name, h.ev.Kind(), h.id.Handle(), h.ev, want)
	}
	if got.Ident() != h.id.Handle() {
		e.w.Errorf("%T names %d, and was told of %d", got, got.Ident(), h.id.Handle())
	}
	return got
}

// request waits for a ConnectRequest and gives its identifier.
func (e *end) request() (*cmid.ID, *cmid.ConnectRequest) {
	e.w.Helper()
	ev := next[*cmid.ConnectRequest](e, nil)
	return e.ch.ID(ev.Ident()), ev
}

// must fails the test when a call does.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantErr holds err against an errno, 0 for none.
func (w *world) wantErr(what string, err error, want unix.Errno) {
	w.Helper()
	var got unix.Errno
	if err != nil && !errors.As(err, &got) {
		w.Errorf("%s: %v has no errno", what, err)
		return
	}
	if got != want {
		w.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

func (w *world) wantState(what string, id *cmid.ID, want states.State) {
	w.Helper()
	if id.State() != want {
		w.Errorf("%s: state %v, want %v", what, id.State(), want)
	}
}

// create makes an identifier.
func (e *end) create(ps cmid.PortSpace) *cmid.ID {
	e.w.Helper()
	id, err := e.ch.CreateID(ps)
	e.w.must(err)
	return id
}

func at(ip netip.Addr, port uint16) cmid.Addr { return cmid.AddrFrom(ip, port) }

// any4 is the IPv4 wildcard.
func any4(port uint16) cmid.Addr { return cmid.AddrFrom(netip.IPv4Unspecified(), port) }

// bound makes an identifier and binds it.
func (e *end) bound(ps cmid.PortSpace, a cmid.Addr) *cmid.ID {
	e.w.Helper()
	id := e.create(ps)
	e.w.must(id.BindAddr(a))
	return id
}

// listener listens on a port of the passive side; port 0 lets the device choose.
func (w *world) listener(ps cmid.PortSpace, a cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.b.bound(ps, a)
	w.must(id.Listen(0))
	w.port = id.SrcPort()
	return id
}

// resolved makes an identifier that has resolved Address and a port, and the route to it.
func (w *world) resolved(ps cmid.PortSpace, dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.a.create(ps)
	w.must(id.ResolveAddr(cmid.Addr{}, dst, time.Second))
	next[*cmid.AddrResolved](w.a, id)
	w.must(id.ResolveRoute(time.Second))
	next[*cmid.RouteResolved](w.a, id)
	return id
}

// rings is a queue pair with a completion queue that is polled whenever it says so.
type rings struct {
	qp   verbs.QP
	cq   verbs.CQ
	pd   verbs.PD
	mr   *verbs.MR
	done []verbs.WC
	then func() // after completions
	wc   [3]verbs.WC
}

const (
	ringDepth = 8
	slotSize  = 256
)

// queues makes a queue pair with n receives of slotSize posted.
func (w *world) queues(id *cmid.ID, n int) *rings {
	w.Helper()
	return w.queuesWith(id, n, nil)
}

// queuesWith is queues with other attributes than the usual.
func (w *world) queuesWith(id *cmid.ID, n int, change func(verbs.Device, *verbs.QPInitAttr)) *rings {
	w.Helper()
	q := &rings{}
	dev := id.Device()
	if dev == nil {
		w.Fatalf("no device in state %v", id.State())
	}
	var err error
	q.cq, err = dev.CreateCQ(4*ringDepth, q.poll)
	w.must(err)
	attr := verbs.QPInitAttr{
		SendCQ: q.cq, RecvCQ: q.cq, MaxSendWR: ringDepth, MaxRecvWR: ringDepth, Context: q,
	}
	if change != nil {
		change(dev, &attr)
	}
	q.pd = attr.PD
	if q.pd == nil {
		q.pd = dev.PD()
	}
	q.mr, err = q.pd.Alloc(2*ringDepth*slotSize, verbs.LocalWrite)
	w.must(err)
	q.qp, err = id.CreateQP(attr)
	w.must(err)
	for i := range n {
		w.must(q.postRecv(i, slotSize))
	}
	return q
}

func (q *rings) poll() {
	for n := q.cq.Poll(q.wc[:]); n > 0; n = q.cq.Poll(q.wc[:]) {
		q.done = append(q.done, q.wc[:n]...)
	}
	if q.then != nil {
		q.then()
	}
}

// postRecv posts slot i for up to n bytes. Its work request is 100+i.
func (q *rings) postRecv(i, n int) error {
	return q.qp.PostRecv(verbs.RecvWR{ID: uint64(100 + i), SGE: verbs.SGE{MR: q.mr, Offset: uint32(i * slotSize), Length: uint32(n)}})
}

// slot is what receive i holds.
func (q *rings) slot(i int) []byte { return q.mr.Bytes[i*slotSize : (i+1)*slotSize] }

// postSend posts a Send of text from the memory's second half.
func (q *rings) postSend(i int, text string) error {
	off := (ringDepth + i%ringDepth) * slotSize
	copy(q.mr.Bytes[off:off+slotSize], text)
	return q.qp.PostSend(&verbs.SendWR{
		ID: uint64(i), Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: q.mr, Offset: uint32(off), Length: uint32(len(text))}},
	})
}

// of are the completions of one kind.
func (q *rings) of(op verbs.Opcode) (wc []verbs.WC) {
	for _, c := range q.done {
		if (c.ID >= 100) == (op == verbs.Recv) {
			wc = append(wc, c)
		}
	}
	return wc
}

// link is a connection.
type link struct {
	listener, active, passive *cmid.ID
	aq, bq                    *rings
}

// requested connects as far as the request: the passive side has it, and has not answered.
func (w *world) requested(recvs int, private []byte, param *cmid.ConnParam) (*link, *cmid.ConnectRequest) {
	w.Helper()
	c := &link{listener: w.listener(cmid.PortSpaceTCP, any4(0))}
	c.active = w.resolved(cmid.PortSpaceTCP, at(w.rig.Address, w.port))
	c.aq = w.queues(c.active, recvs)
	w.must(c.active.Connect(private, param))
	var ev *cmid.ConnectRequest
	c.passive, ev = w.b.request()
	return c, ev
}

// connected connects, with queue pairs on both sides.
func (w *world) connected(recvs int) *link {
	w.Helper()
	return w.connectedWith(setup{recvs: recvs})
}

// setup is how a connection is made.
type setup struct {
	recvs           int
	connect, accept *cmid.ConnParam
	// active and passive change the queue pairs' attributes.
	active, passive func(verbs.Device, *verbs.QPInitAttr)
}

// connectedWith connects, with queue pairs on both sides.
func (w *world) connectedWith(s setup) *link {
	w.Helper()
	c := &link{listener: w.listener(cmid.PortSpaceTCP, any4(0))}
	c.active = w.resolved(cmid.PortSpaceTCP, at(w.rig.Address, w.port))
	c.aq = w.queuesWith(c.active, s.recvs, s.active)
	w.must(c.active.Connect(nil, s.connect))
	c.passive, _ = w.b.request()
	c.bq = w.queuesWith(c.passive, s.recvs, s.passive)
	w.must(c.passive.Accept(nil, s.accept))
	next[*cmid.Established](w.a, c.active)
	next[*cmid.Established](w.b, c.passive)
	return c
}
