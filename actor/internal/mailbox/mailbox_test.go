package mailbox

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/rdmactor/rdmactor/eventloop"
)

// names formats the messages of an actor: "event 1", "watch".
func names(got []any) (list []string) {
	for _, msg := range got {
		switch m := actor.UnwrapEnvelopeMessage(msg).(type) {
		case *event:
			list = append(list, fmt.Sprint("event ", m.n))
		case *control:
			list = append(list, fmt.Sprint("control ", m.n))
		case *data:
			list = append(list, fmt.Sprint("data ", m.n))
		case *actor.Watch:
			list = append(list, "watch "+m.Watcher.Id)
		default:
			list = append(list, fmt.Sprintf("%T", m))
		}
	}
	return list
}

// watching returns a system message that can be distinguished from others.
func watching(id string) *actor.Watch { return &actor.Watch{Watcher: &actor.PID{Id: id}} }

func enveloped(msg any) *actor.MessageEnvelope { return &actor.MessageEnvelope{Message: msg} }

// Waiting messages are served lane by lane, and first come first served inside a lane.
func TestLanes(t *testing.T) {
	for _, c := range []struct {
		name string
		post []any
		want []string
	}{
		{"lifecycle is FIFO", []any{watching("1"), watching("2"), watching("3")}, []string{"watch 1", "watch 2", "watch 3"}},
		{"events are FIFO", []any{&event{1}, &event{2}, &event{3}}, []string{"event 1", "event 2", "event 3"}},
		{"control is FIFO", []any{&control{1}, &control{2}, &control{3}}, []string{"control 1", "control 2", "control 3"}},
		{"data is FIFO", []any{&data{1}, &data{2}, &data{3}}, []string{"data 1", "data 2", "data 3"}},
		{"strict order", []any{&data{1}, &control{1}, &event{1}, watching("1")}, []string{"watch 1", "event 1", "control 1", "data 1"}},
		{
			"interleaved",
			[]any{&data{1}, &event{1}, &control{1}, &data{2}, watching("1"), &control{2}, &event{2}, watching("2")},
			[]string{"watch 1", "watch 2", "event 1", "event 2", "control 1", "control 2", "data 1", "data 2"},
		},
		{
			"an envelope is in its message's lane",
			[]any{enveloped(&data{1}), enveloped(&control{1}), enveloped(&event{1})},
			[]string{"event 1", "control 1", "data 1"},
		},
		{"a batch's elements come before the batch, as in Proto.Actor", []any{batch{&data{1}, &data{2}}}, []string{"data 1", "data 2", "mailbox.batch"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &byHand{}
			m, s := started(h, config)
			users := 0
			for _, msg := range c.post {
				if w, ok := msg.(*actor.Watch); ok {
					m.PostSystemMessage(w)
				} else {
					m.PostUserMessage(msg)
					users++
				}
			}
			if b, ok := c.post[0].(batch); ok {
				users += len(b)
			}
			if n := m.UserMessageCount(); n != users {
				t.Errorf("UserMessageCount is %d, want %d", n, users)
			}
			h.run()
			if diff := cmp.Diff(c.want, names(s.got)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			if n := m.UserMessageCount(); n != 0 {
				t.Errorf("UserMessageCount is %d in the end", n)
			}
		})
	}
}

type batch []any

func (b batch) GetMessages() []any { return b }

// A message that arrives during a turn is served before everything in lower lanes that waited
// already.
func TestPriorityHoldsWithinATurn(t *testing.T) {
	h := &byHand{}
	m, s := started(h, config)
	s.onMessage = func(msg any) {
		if d, ok := msg.(*data); ok && d.n == 1 {
			m.PostUserMessage(&control{1})
			m.Deliver(&event{1})
			m.PostSystemMessage(watching("1"))
		}
	}
	m.PostUserMessage(&data{1})
	m.PostUserMessage(&data{2})
	h.run()
	want := []string{"data 1", "watch 1", "event 1", "control 1", "data 2"}
	if diff := cmp.Diff(want, names(s.got)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// deliver invokes the actor within the call, after more urgent and older messages; a suspended one
// gets the event in its turn.
func TestDeliver(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(m *Mailbox)
		now     []string // got when deliver returns
		all     []string // got in the end
	}{
		{"idle", func(*Mailbox) {}, []string{"event 0"}, []string{"event 0"}},
		{"lower lanes wait", func(m *Mailbox) {
			m.PostUserMessage(&data{1})
			m.PostUserMessage(&control{1})
		}, []string{"event 0"}, []string{"event 0", "control 1", "data 1"}},
		{"lifecycle waits", func(m *Mailbox) { m.PostSystemMessage(watching("1")) }, []string{"watch 1", "event 0"}, []string{"watch 1", "event 0"}},
		{"events wait", func(m *Mailbox) { m.PostUserMessage(&event{1}) }, []string{"event 1", "event 0"}, []string{"event 1", "event 0"}},
		{"suspended", func(m *Mailbox) { m.suspended = true }, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &byHand{}
			m, s := started(h, config)
			c.prepare(m)
			m.Deliver(&event{})
			if diff := cmp.Diff(c.now, names(s.got)); diff != "" {
				t.Errorf("within deliver (-want +got):\n%s", diff)
			}
			h.run()
			if diff := cmp.Diff(c.all, names(s.got)); diff != "" {
				t.Errorf("in the end (-want +got):\n%s", diff)
			}
		})
	}
}

// An actor's Receive is not entered again while it runs, however the event gets there.
func TestDeliverIsNotReentrant(t *testing.T) {
	for _, first := range []string{"deliver", "post"} {
		t.Run(first, func(t *testing.T) {
			h := &byHand{}
			m, s := started(h, config)
			depth := 0
			s.onMessage = func(msg any) {
				if depth++; depth > 1 {
					t.Error("entered while running")
				}
				if e, ok := msg.(*event); ok && e.n < 3 {
					m.Deliver(&event{e.n + 1})
				}
				depth--
			}
			if first == "deliver" {
				m.Deliver(&event{1})
			} else {
				m.PostUserMessage(&event{1})
			}
			h.run()
			if diff := cmp.Diff([]string{"event 1", "event 2", "event 3"}, names(s.got)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// An event that comes before the actor's Started waits for it, although nothing else is queued.
func TestNothingComesBeforeStarted(t *testing.T) {
	h := &byHand{}
	s := &script{}
	m := New(h, config, nil)
	m.PostUserMessage(&data{1}) // the name was known before the actor was spawned
	h.run()
	m.RegisterHandlers(s, nil)
	m.Deliver(&event{1})
	h.run()
	if len(s.got) > 0 {
		t.Fatalf("got %v before Started", names(s.got))
	}
	m.PostSystemMessage(&actor.Started{})
	h.run()
	if diff := cmp.Diff([]string{"*actor.Started", "event 1", "data 1"}, names(s.got)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A turn ends after its budget, in all lanes, and the rest is not forgotten.
func TestBudget(t *testing.T) {
	h := &byHand{}
	m, s := started(h, config)
	for n := range 5 {
		m.PostUserMessage(&data{n})
		m.PostUserMessage(&event{n})
		m.PostSystemMessage(watching(fmt.Sprint(n)))
	}
	for want := 4; want < 15; want += 4 {
		h.turn(4)
		if len(s.got) != want {
			t.Fatalf("%d messages taken, want %d", len(s.got), want)
		}
	}
	h.turn(4)
	if len(s.got) != 15 {
		t.Errorf("%d messages in the end, want 15", len(s.got))
	}
	if h.turn(4) != 0 {
		t.Error("scheduled although it is empty")
	}
}

// Two actors that are both flooded take turns on their loop.
func TestBudgetIsFair(t *testing.T) {
	r := newRig(t, 1)
	l := r.loops[0]
	const each = 10 * eventloop.RunBudget
	var order []string
	props := func(name string) *actor.Props {
		return actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*data); ok {
				order = append(order, name)
			}
		}, r.OnLoop())
	}
	a, b := r.sys.Root.Spawn(props("a")), r.sys.Root.Spawn(props("b"))
	on(t, l, func() {
		for n := range each {
			r.sys.Root.Send(a, &data{n})
		}
		for n := range each {
			r.sys.Root.Send(b, &data{n})
		}
	})
	for done := false; !done; {
		on(t, l, func() { done = len(order) == 2*each })
	}
	longest, run := 0, 0
	for i, name := range order {
		if i > 0 && name != order[i-1] {
			run = 0
		}
		run++
		longest = max(longest, run)
	}
	if longest > eventloop.RunBudget {
		t.Errorf("one actor held the loop for %d messages, its budget is %d", longest, eventloop.RunBudget)
	}
}

// A suspended actor gets lifecycle messages only, and the rest in order once it is resumed.
func TestSuspension(t *testing.T) {
	h := &byHand{}
	m, s := started(h, config)
	m.PostSystemMessage(&actor.SuspendMailbox{})
	m.PostUserMessage(&data{1})
	m.Deliver(&event{1})
	m.PostSystemMessage(watching("1"))
	h.run()
	if diff := cmp.Diff([]string{"watch 1"}, names(s.got)); diff != "" {
		t.Errorf("while suspended (-want +got):\n%s", diff)
	}
	m.PostUserMessage(&control{1})
	h.run()
	m.PostSystemMessage(&actor.ResumeMailbox{})
	h.run()
	if diff := cmp.Diff([]string{"watch 1", "event 1", "control 1", "data 1"}, names(s.got)); diff != "" {
		t.Errorf("after resuming (-want +got):\n%s", diff)
	}
}

// A panic in an invocation is escalated with its reason, and costs that message only.
func TestPanicIsEscalated(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(m *Mailbox)
	}{
		{"user message", func(m *Mailbox) { m.PostUserMessage(&data{0}) }},
		{"system message", func(m *Mailbox) { m.PostSystemMessage(watching("0")) }},
		{"delivered event", func(m *Mailbox) { m.Deliver(&event{0}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &byHand{}
			m, s := started(h, config)
			s.onMessage = func(any) {
				s.onMessage = nil
				panic("for the test")
			}
			c.send(m)
			m.PostUserMessage(&data{1})
			h.run()
			if diff := cmp.Diff([]any{"for the test"}, s.failures); diff != "" {
				t.Errorf("escalated (-want +got):\n%s", diff)
			}
			if got := names(s.got); len(got) != 2 || got[1] != "data 1" {
				t.Errorf("got %v, want the message that failed and data 1", got)
			}
			m.Deliver(&event{1})
			if got := names(s.got); got[len(got)-1] != "event 1" {
				t.Errorf("got %v: the mailbox believes that the panicked invocation still runs", got)
			}
		})
	}
}

// A panic in the supervisor's own code is reported, and the actor's queue survives.
func TestPanicOfTheSupervisorKeepsTheQueue(t *testing.T) {
	h := &byHand{}
	m, s := started(h, config)
	m.invoker = badSupervisor{s}
	s.onMessage = func(any) { s.onMessage = nil; panic("in Receive") }
	m.PostUserMessage(&data{1})
	m.PostUserMessage(&data{2})
	h.run()
	if diff := cmp.Diff([]any{"in the supervisor"}, h.left); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"data 1", "data 2"}, names(s.got)); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

type badSupervisor struct{ *script }

func (badSupervisor) EscalateFailure(any, any) { panic("in the supervisor") }

// The data lane refuses messages beyond its bound, on the poster's goroutine; the other lanes have
// room. Proto.Actor's BoundedDropping mailbox keeps a core busy forever after one overflow, and
// its Bounded one spins when full.
func TestOverflow(t *testing.T) {
	h := &byHand{}
	var refused []any
	m, s := startedWith(h, &Config{Limit: 2}, policy{overflow: func(msg any, _ int32) (admit bool) {
		refused = append(refused, msg)
		return false
	}})
	for n := range 4 {
		m.PostUserMessage(enveloped(&data{n}))
		m.PostUserMessage(&control{n})
		m.Deliver(&event{n})
	}
	if diff := cmp.Diff([]string{"data 2", "data 3"}, names(refused)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	h.run()
	if n := h.turn(1); n != 0 || m.UserMessageCount() != 0 {
		t.Errorf("after the overflow: %d mailboxes scheduled and %d messages counted, want none", n, m.UserMessageCount())
	}
	if len(s.got) != 10 {
		t.Errorf("got %v, want 4 events, 4 controls, 2 data", names(s.got))
	}
	m.PostUserMessage(&data{4})
	h.run()
	if got := names(s.got); got[len(got)-1] != "data 4" {
		t.Errorf("got %v, want data 4 last: there is room again", got)
	}
}

// An actor that sends itself more than its lane holds gets the refusals, and goes on.
// Proto.Actor's Bounded mailbox hangs here.
func TestOverflowFromWithin(t *testing.T) {
	h := &byHand{}
	refused := 0
	m, s := startedWith(h, &Config{Limit: 8}, policy{overflow: func(any, int32) bool { refused++; return false }})
	s.onMessage = func(msg any) {
		if _, ok := msg.(*control); ok {
			for n := range 20 {
				m.PostUserMessage(&data{n})
			}
		}
	}
	m.PostUserMessage(&control{})
	h.run()
	if refused != 12 || len(s.got) != 9 {
		t.Errorf("%d refused and %d got, want 12 and 9", refused, len(s.got))
	}
}

// A message's done is called once, after Receive, whatever becomes of it.
func TestDone(t *testing.T) {
	h := &byHand{}
	m, s := started(h, config)
	s.onMessage = func(msg any) {
		if h, ok := actor.UnwrapEnvelopeMessage(msg).(*holding); ok && h.finished.Load() > 0 {
			t.Error("done before Receive has returned")
		}
	}
	posted, wrapped, delivered, failed := &holding{}, &holding{}, &holding{}, &holding{}
	m.PostUserMessage(posted)
	m.PostUserMessage(enveloped(wrapped))
	h.run()
	m.Deliver(enveloped(delivered))
	s.onMessage = func(any) { panic("for the test") }
	m.Deliver(failed)
	for name, msg := range map[string]*holding{"posted": posted, "in an envelope": wrapped, "delivered": delivered, "failed": failed} {
		if n := msg.finished.Load(); n != 1 {
			t.Errorf("%s: done was called %d times, want 1", name, n)
		}
	}
}

// A message that is handed over is received immediately, or waits: its hold is released once in
// either case, and so is that of a mailbox that gets it handed on.
func TestHand(t *testing.T) {
	h := &byHand{}
	m, s := started(h, config)
	other, _ := started(h, config)
	first, second := &holding{}, &holding{}
	s.onMessage = func(msg any) {
		switch actor.UnwrapEnvelopeMessage(msg) {
		case first:
			m.DeliverOwned(enveloped(second), second)
			other.PostUserMessage(first)
		case second:
			if first.finished.Load() != 1 {
				t.Error("entered while running: the first message is not done")
			}
		}
	}
	m.DeliverOwned(enveloped(first), first)
	if n := first.finished.Load(); n != 1 {
		t.Errorf("done was called %d times for the message that was received at once, want 1", n)
	}
	h.run()
	if a, b := first.finished.Load(), second.finished.Load(); a != 2 || b != 1 || first.kept.Load() != 1 || second.kept.Load() != 0 {
		t.Errorf("done was called %d times for the first message and %d times for the one that waited, want 2 and 1", a, b)
	}
	if len(s.got) != 2 {
		t.Errorf("got %v, want both messages", names(s.got))
	}
}

// holding counts its holds, and their releases.
type holding struct {
	kept     atomic.Int32
	finished atomic.Int32
}

func (h *holding) Retain() { h.kept.Add(1) }

func (h *holding) Delivered() {}

func (h *holding) Release(*Loop) error {
	h.finished.Add(1)
	return nil
}

// policy is a Policy of functions.
type policy struct {
	overflow func(msg any, over int32) bool
	leftover func(msg any)
}

func (p policy) Overflow(msg any, over int32) bool { return p.overflow(msg, over) }

func (p policy) Leftover(msg any) { p.leftover(msg) }

// A mailbox that nothing waits in is small: it has no buffers, only pointers.
func TestIdleMailboxIsSmall(t *testing.T) {
	// a size that Go allocates: one of 216 bytes takes it, too
	if size := reflect.TypeFor[Mailbox]().Size(); size > 224 {
		t.Errorf("an idle mailbox takes %d bytes, want at most 224", size)
	}
}
