package cmidtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
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
	mask         verbs.QPAttrMask // that InitQPAttr gave
	realDeadline time.Duration
	quietFor     time.Duration
	closed       bool
}

// end is one side: a channel on a loop.
type end struct {
	w     *world
	name  string
	l     *eventloop.Loop
	d     cmid.Driver
	ch    *cmid.Channel
	extra *cmid.Channel // see other
	heard []heard
	then  func(heard) // when something is heard
}

// heard is an event that was told.
type heard struct {
	id      *cmid.ID
	ev      cmid.Event
	answers cmid.Command
	ch      *cmid.Channel // that told
}

func (r *run) world(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, r: r, rig: r.open(t)}
	w.realDeadline, w.quietFor = cmp.Or(w.rig.Patience, 15*time.Second), cmp.Or(w.rig.Quiet, 30*time.Millisecond)
	w.a = w.end("active", w.rig.Active)
	w.b = w.end("passive", w.rig.Passive)
	if r.flavor == nil {
		f := w.b.flavor()
		r.flavor = &f
	}
	w.iwarp = *r.flavor&states.IWARP != 0
	t.Cleanup(w.close)
	return w
}

// close ends both sides, the passive one first: the kernel may keep an identifier that connects until it has its answer. A second close
// does nothing.
func (w *world) close() {
	if w.closed {
		return
	}
	w.closed = true
	var errs []error
	for _, e := range []*end{w.b, w.a} {
		errs = append(errs, e.ch.Close())
		if e.extra != nil {
			errs = append(errs, e.extra.Close())
		}
	}
	for _, e := range []*end{w.b, w.a} {
		errs = append(errs, e.l.Shutdown(context.Background()))
	}
	if err := errors.Join(errs...); err != nil {
		w.Error(err)
	}
}

func (w *world) end(name string, d cmid.Driver) *end {
	w.Helper()
	e := &end{w: w, name: name, d: d}
	cfg := eventloop.Config{Name: name}
	if w.rig.Clock != nil {
		cfg.Clock, cfg.Poller = w.rig.Clock, eventlooptest.NewPollerOn(w.rig.Clock)
	}
	var err error
	if e.l, err = eventloop.New(cfg); err != nil {
		w.Fatal(err)
	}
	e.ch = e.channel()
	return e
}

// channel opens the driver on the end's loop.
func (e *end) channel() (ch *cmid.Channel) {
	e.w.Helper()
	ch, err := cmid.NewChannel(e.l, e.d, func(id *cmid.ID, ev cmid.Event, answers cmid.Command) {
		switch ev.(type) {
		case *cmid.Closed: // the device has taken its time to give an identifier back
			return
		case *cmid.QPFailed: // a device may say so, or leave it to the completions
			return
		}
		e.heard = append(e.heard, heard{id, ev, answers, ch})
		if e.then != nil {
			e.then(e.heard[len(e.heard)-1])
		}
	})
	e.w.must(err)
	return ch
}

// other is another channel on the end's loop.
func (e *end) other() *cmid.Channel {
	e.w.Helper()
	if e.extra == nil {
		e.extra = e.channel()
	}
	return e.extra
}

// sideOf is the end that an identifier was made on.
func (w *world) sideOf(id *cmid.ID) *end {
	for _, ch := range []*cmid.Channel{w.b.ch, w.b.extra} {
		if ch != nil && ch.ID(id.Handle()) == id {
			return w.b
		}
	}
	return w.a
}

// flavor is that of the device with Address.
func (e *end) flavor() states.Flavor {
	e.w.Helper()
	id := e.bound(cmid.PortSpaceTCP, at(e.w.rig.Address, 0))
	f := id.Flavor()
	e.w.must(id.Destroy())
	e.heard = nil
	return f
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
	w.within(0, w.quietFor, func() bool { return false })
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
	got, _ := nextFrom[E](e, id)
	return got
}

// nextFrom is next, and the channel that told.
func nextFrom[E cmid.Event](e *end, id *cmid.ID) (E, *cmid.Channel) {
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
	return got, h.ch
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

// qpns numbers queue pairs that are not there. The kernel of a peer rejects a number that it had from this host a moment ago.
var qpns atomic.Uint32

func init() { qpns.Store(1<<22 | rand.Uint32N(1<<22)) }

func freshQPN() uint32 { return qpns.Add(1) }

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

// limits are those of the device with Address.
func (w *world) limits() cmid.Limits {
	w.Helper()
	id := w.b.bound(cmid.PortSpaceTCP, at(w.rig.Address, 0))
	lim := id.Limits()
	w.must(id.Destroy())
	w.b.heard = nil
	return lim
}
