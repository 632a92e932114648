package differential

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/states"
	rdma "github.com/rdmactor/rdmactor/verbs"
)

// Rig is a driver that is set up for one program, and the names of its addresses. All identifiers
// are on one host.
type Rig struct {
	Driver cmid.Driver
	// Clock is the driver's time when it is virtual.
	Clock *eventlooptest.Clock
	// Address is a device's. Second is another one of it, Plain one of an interface without a
	// device, Foreign nobody's; NoARP can be routed to and answers no question for its address,
	// NoRoute is an IPv6 address that cannot. The zero Addr: there is none.
	Address, Second, Plain, Foreign, NoARP, NoRoute netip.Addr
	// Ports are two that nobody has.
	Ports [2]uint16
	// Patience is how long an answer may take that the other driver has given. Quiet is how long
	// nothing may come for silence.
	Patience, Quiet time.Duration
}

// world is a driver with what a program has made on it.
type world struct {
	rig             Rig
	active, passive *end
	slots           map[string]*slot
	order           []string // of the slots
	children        int
	ports           map[uint16]string // ports by name, in the order in which they were seen
	caught          atomic.Int32
	moved           bool // something was told since the last look
	err             error
}

// end is one side: a channel on a loop.
type end struct {
	w  *world
	l  *eventloop.Loop
	ch *cmid.Channel

	inst *watchedInstance
}

// slot is a name in programs, and the identifier that has it now.
type slot struct {
	name   string
	end    *end
	id     *cmid.ID // nil before create and after destroy
	qp     rdma.QP
	made   int      // identifiers so far
	events []string // told and not yet looked at
	params []string // what they say of depths, retries and the like
	asked  []asked  // commands of this turn
}

// asked is a command and its answer.
type asked struct {
	step   Step
	n      int // in its turn
	cmd    cmid.Command
	before states.State
	answer string
}

var errNoDevice = errors.New("no device")

// lastQPN numbers the queue pairs that are not there. The range is beyond what soft devices give
// out.
var lastQPN atomic.Uint32

func nextQPN() uint32 { return 0x400000 + lastQPN.Add(1)%0x3fffff }

func newWorld(rig Rig) (*world, error) {
	w := &world{rig: rig, slots: make(map[string]*slot), ports: make(map[uint16]string)}
	w.ports[rig.Ports[0]], w.ports[rig.Ports[1]] = "x", "y"
	var err error
	if w.active, err = w.open("active"); err != nil {
		return nil, err
	}
	if w.passive, err = w.open("passive"); err != nil {
		return nil, errors.Join(err, w.close())
	}
	for _, name := range []string{"a", "b"} {
		w.add(name, w.active)
	}
	for _, name := range []string{"p", "q"} {
		w.add(name, w.passive)
	}
	return w, nil
}

func (w *world) add(name string, e *end) *slot {
	s := &slot{name: name, end: e}
	w.slots[name] = s
	w.order = append(w.order, name)
	return s
}

func (w *world) open(name string) (*end, error) {
	e := &end{w: w}
	cfg := eventloop.Config{Name: name}
	if w.rig.Clock != nil {
		cfg.Clock, cfg.Poller = w.rig.Clock, eventlooptest.NewPollerOn(w.rig.Clock)
	}
	var err error
	if e.l, err = eventloop.New(cfg); err != nil {
		return nil, err
	}
	d := watched{w.rig.Driver, &w.caught, func(inst *watchedInstance) { e.inst = inst }}
	if e.ch, err = cmid.NewChannel(e.l, d, e.heard); err != nil {
		return nil, errors.Join(err, e.l.Shutdown(context.Background()))
	}
	return e, nil
}

// finish answers the requests that are open: on soft-iWARP the end of a connecting identifier
// blocks for 10 s.
func (w *world) finish() {
	open := false
	for _, s := range w.slots {
		if s.alive() && s.id.State() == states.ConnectRequested {
			s.id.Do(&cmid.Reject{})
			open = true
		}
	}
	connecting := func() bool {
		for _, s := range w.slots {
			if s.alive() && s.id.State() == states.Connecting {
				return true
			}
		}
		return false
	}
	for begin := time.Now(); open && w.rig.Clock == nil && connecting() && time.Since(begin) < w.rig.Patience; {
		w.turn()
		w.wait(time.Millisecond)
	}
}

// close ends both sides.
func (w *world) close() error {
	if w.err == nil && w.active != nil && w.passive != nil {
		w.finish()
	}
	err := w.err
	for _, e := range []*end{w.active, w.passive} {
		if e != nil {
			err = errors.Join(err, e.ch.Close(), e.l.Shutdown(context.Background()))
		}
	}
	if n := w.caught.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("differential: %d commands passed the state machine that would harm a kernel", n))
	}
	return err
}

// heard is the channels' sink.
func (e *end) heard(id *cmid.ID, ev cmid.Event, answers cmid.Command) {
	w := e.w
	w.moved = true
	if _, ok := ev.(*cmid.ConnectRequest); ok {
		w.children++
		s := w.add(fmt.Sprintf("c%d", w.children), e)
		s.id, s.made, id.Context = id, 1, s
		w.portNames(s)
	}
	s, _ := id.Context.(*slot)
	switch {
	case s == nil || s.id != id:
		w.err = errors.Join(w.err, fmt.Errorf("differential: %v of an identifier that is gone", ev.Kind()))
	case s.answered(ev, answers):
		if _, ok := ev.(*cmid.Closed); ok {
			s.id, s.qp = nil, nil
		}
	default:
		s.told(ev)
	}
}

// told notes an event.
func (s *slot) told(ev cmid.Event) {
	if line := event(s.id, ev); line != "" {
		s.events = append(s.events, line)
	}
	if line := params(ev); line != "" {
		s.params = append(s.params, line)
	}
}

// answered takes an event that is a call's return value, given late.
func (s *slot) answered(ev cmid.Event, answers cmid.Command) bool {
	if !isAnswer(ev) {
		return false
	}
	for i := range s.asked {
		if s.asked[i].cmd == answers {
			s.asked[i].answer = errnoOf(ev)
			return true
		}
	}
	return false
}

func isAnswer(ev cmid.Event) bool {
	switch ev.(type) {
	case *cmid.CommandFailed, *cmid.Done, *cmid.Bound, *cmid.Listening, *cmid.Closed:
		return true
	}
	return false
}

// perform sends a command.
func (w *world) perform(n int, st Step) {
	s := w.slots[st.Who]
	if s == nil {
		return // a child that this run has not got
	}
	a := asked{step: st, n: n, answer: "ok"}
	switch {
	case st.Verb == "create" && !s.alive():
		id, err := s.end.ch.CreateID(cmid.PortSpaceTCP)
		if a.answer = errorName(err); err == nil {
			id.Context = s
			s.id, s.qp = id, nil
			s.made++
		}
	case !s.alive() || st.Verb == "create":
		return
	case st.Verb == "qp":
		a.before = s.id.State()
		a.answer = errorName(s.createQP())
	default:
		w.command(s, &a)
		return
	}
	s.asked = append(s.asked, a)
}

func (w *world) command(s *slot, a *asked) {
	a.before = s.id.State()
	a.cmd = verbs[a.step.Verb].make(w, s, a.step.Arg)
	i := len(s.asked)
	s.asked = append(s.asked, *a)
	ev := s.id.Do(a.cmd)
	if ev == nil {
		return // the answer is an event, or comes later
	}
	s.asked[i].answer = errnoOf(ev)
	if e, ok := ev.(*cmid.Established); ok {
		s.told(e)
	}
	if _, ok := ev.(*cmid.Closed); ok {
		s.id, s.qp = nil, nil
	}
}

// turn lets both loops do what there is to do now.
func (w *world) turn() {
	const turnsPerLook = 6
	for range turnsPerLook {
		for _, e := range []*end{w.active, w.passive} {
			if err := e.l.Turn(); err != nil {
				w.err = errors.Join(w.err, err)
				return
			}
		}
	}
}

// run performs a turn of a program, waits for silence and tells what was seen. want is what the
// other driver has shown; waiting ends early when this one has shown the same, and only then is
// there no doubt that nothing more will come.
func (w *world) run(t Turn, want seen) seen {
	for _, s := range w.slots {
		s.asked = nil
	}
	for i, st := range t {
		w.perform(i, st)
	}
	if w.rig.Clock != nil {
		w.settleVirtual()
	} else {
		w.settleReal(want)
	}
	out := w.look()
	for _, s := range w.slots {
		s.events, s.params = nil, nil
	}
	return out
}

// alive says that there is an identifier whose end has not begun.
func (s *slot) alive() bool { return s.id != nil && s.id.State() != states.Destroying }

// busy says that an identifier waits for something that comes by itself, within resolveTimeout or
// at the device's own pace.
func (w *world) busy() bool {
	for _, s := range w.slots {
		if s.id != nil {
			switch s.id.State() {
			case states.AddrQuery, states.RouteQuery, states.Destroying:
				return true
			}
		}
	}
	return false
}

func (w *world) settleVirtual() {
	const step = 20 * time.Millisecond
	for w.moved = true; w.moved; {
		w.moved = false
		w.turn()
	}
	for passed := time.Duration(0); w.busy() && passed <= 2*resolveTimeout; passed += step {
		w.rig.Clock.Advance(step)
		w.turn()
	}
	w.turn()
}

func (w *world) settleReal(want seen) {
	begin := time.Now()
	last, same := begin, false
	for w.moved = true; w.err == nil; {
		w.turn()
		now := time.Now()
		if w.moved {
			w.moved, last = false, now
			same = want != nil && want.equal(w.look())
		}
		quiet := now.Sub(last)
		switch {
		case same && quiet >= w.rig.Quiet && !w.busy(), now.Sub(begin) >= w.rig.Patience:
			return
		case want == nil && quiet >= w.rig.Quiet && !w.busy():
			return
		}
		w.wait(time.Millisecond)
	}
}

// wait waits until a loop has something to do.
func (w *world) wait(d time.Duration) {
	var fds []unix.PollFd
	for _, e := range []*end{w.active, w.passive} {
		fd, err := e.l.FD()
		if err != nil {
			w.err = errors.Join(w.err, err)
			return
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if _, err := unix.Poll(fds, int(d/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
		w.err = errors.Join(w.err, err)
	}
}
