package differential

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
)

func newWorld(rig Rig) (*world, error) {
	w := &world{rig: rig, loops: sides.Loops{Time: rig.Clock}, slots: make(map[string]*slot), ports: make(map[uint16]string)}
	w.ports[rig.Ports[0]], w.ports[rig.Ports[1]] = "x", "y"
	var err error
	if w.active, err = w.open("active"); err == nil {
		w.passive, err = w.open("passive")
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	w.add("a", w.active)
	w.add("b", w.active)
	w.add("p", w.passive)
	w.add("q", w.passive)
	return w, nil
}

func (w *world) open(name string) (*end, error) {
	e := &end{w: w}
	loop, err := w.loops.Open(name)
	if err != nil {
		return nil, err
	}
	d := watched{w.rig.Driver, &w.caught, func(inst *watchedInstance) { e.inst = inst }}
	e.ch, err = cmid.NewChannel(loop, d, e.heard)
	return e, err
}

// finish answers the open requests. Without an answer, the end of a connecting identifier on
// soft-iWARP would block for 10 s.
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
		w.wait()
	}
}

// close ends both sides.
func (w *world) close() error {
	if w.err == nil && w.active != nil && w.passive != nil {
		w.finish()
	}
	err := w.err
	for _, e := range []*end{w.active, w.passive} {
		if e != nil && e.ch != nil {
			err = errors.Join(err, e.ch.Close())
		}
	}
	err = errors.Join(err, w.loops.Shutdown())
	if n := w.caught.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("differential: %d commands passed the state machine that would harm a kernel", n))
	}
	return err
}

// heard handles the events of the channel.
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
		s.note(ev)
	}
}

// note records an event for the next look.
func (s *slot) note(ev cmid.Event) {
	if line := event(s.id, ev); line != "" {
		s.events = append(s.events, line)
	}
	if line := params(ev); line != "" {
		s.params = append(s.params, line)
	}
}

// answered handles an event that may be the late answer to a call, and reports whether it was one.
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
		return // a child that does not exist in this run
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
		return // the answer comes later, or is an event
	}
	s.asked[i].answer = errnoOf(ev)
	if e, ok := ev.(*cmid.Established); ok {
		s.note(e)
	}
	if _, ok := ev.(*cmid.Closed); ok {
		s.id, s.qp = nil, nil
	}
}

// turn lets both loops do all work that can be done now.
func (w *world) turn() { w.err = errors.Join(w.err, w.loops.Turn()) }

// wait waits until a loop has something to do.
func (w *world) wait() { w.err = errors.Join(w.err, w.loops.Wait(time.Millisecond)) }

// run performs a turn of a program, waits until nothing more happens, and returns what was seen.
// want is what the other driver has shown. Waiting ends early if this driver has shown the same,
// because then nothing more can be expected.
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

// busy reports whether an identifier waits for something that comes without a further command,
// within resolveTimeout or at the device's own pace.
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
		w.wait()
	}
}
