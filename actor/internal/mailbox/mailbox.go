package mailbox

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// A mailbox is scheduled from the message that finds it idle until its consumer finds it empty. It
// begins as scheduled: messages in the middle of the spawn have no invoker yet.
const (
	idle int32 = iota
	scheduled
)

// Mailbox is Proto.Actor's Mailbox for an actor that an Executor runs. Unlike Proto.Actor's own it
// serves lanes in strict order, yields its thread after a budget of messages, refuses nil, and
// answers the rest when the actor stops.
//
// Everything below the counters belongs to the consumer: the loop's goroutine, or the goroutine
// that was started for it.
type Mailbox struct {
	queues [lanes]queue
	state  atomic.Int32
	data   atomic.Int32 // messages in the data lane
	other  atomic.Int32 // messages in the event and control lanes

	free      nodeChain
	busy      bool // an invocation is under way
	lifecycle bool // that of a lifecycle message
	suspended bool // since a failure, until its supervisor has decided; and before Started
	closed    bool // the actor has stopped
	last      bool // it receives nothing more but what stops it

	cfg    *Config
	policy Policy        // nil: none
	at     *atomic.Value // the reflect.Type of the message that is received; nil: not recorded
	exec   Executor
	self   eventloop.Runnable // itself, as executors and the watchdog want it
	// the mailbox in the middle of whose message this one's is received; nil: none
	outer   *eventloop.Runnable
	invoker actor.MessageInvoker
	born    actor.Process // the registered process when the actor was spawned; it does not change
	rare    *rare         // nil: the actor was never watched, restarted or stopped
}

var (
	_ actor.Mailbox      = (*Mailbox)(nil)
	_ eventloop.Runnable = (*Mailbox)(nil)
)

// New makes the mailbox of one actor that x runs. p decides about messages that the actor will not
// receive; nil: they become dead letters.
func New(x Executor, c *Config, p Policy) *Mailbox {
	m := &Mailbox{exec: x, cfg: c, policy: p, suspended: true}
	if l := m.Loop(); l != nil && l.traces {
		m.at = new(atomic.Value)
	}
	m.self = m
	m.state.Store(scheduled)
	return m
}

// Option makes an actor run on the Executor that where returns when the actor is spawned. It takes
// the place of a mailbox and a dispatcher in the actor's Props. If a WithMailbox behind it has
// replaced the mailbox, Registry.Undone reports that.
func Option(where func() Executor, c *Config) actor.PropsOption {
	return func(p *actor.Props) {
		p.Configure(
			actor.WithMailbox(func() actor.Mailbox { return New(where(), c, nil) }),
			actor.WithOnInit(func(ctx actor.Context) { RegistryOf(ctx.ActorSystem()).expectMailbox(ctx) }),
		)
	}
}

// Of is the calling actor's mailbox; nil when it is of another package.
func Of(at Place) *Mailbox { return RegistryOf(at.ActorSystem()).get(at.Self().Id) }

// LoopOf is the loop that runs the calling actor; nil if no loop does.
func LoopOf(at Place) *Loop {
	if m := Of(at); m != nil {
		return m.Loop()
	}
	return nil
}

// lastCall is behind everything that an actor may still receive.
type lastCall struct{}

// RegisterHandlers is called once by the spawn, before Started is posted. The dispatcher is not
// used: the executor runs the mailbox.
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
	if at, ok := invoker.(Place); ok {
		if p, ok := at.ActorSystem().ProcessRegistry.GetLocal(at.Self().Id); ok {
			m.born = p
		}
		RegistryOf(at.ActorSystem()).add(at.Self().Id, m)
	}
	if l := m.Loop(); l != nil && l.closing.Load() {
		m.PostData(lastCall{}) // whether LastCalls has seen it, or not
	}
	if m.endTurn(false) {
		m.exec.scheduleMailbox(&m.self)
	}
}

// Start has nothing to do: Started is in the lifecycle lane by now.
func (m *Mailbox) Start() {}

// Loop is the loop that runs the actor; nil off the loops. Any goroutine.
func (m *Mailbox) Loop() *Loop {
	l, _ := m.exec.(*Loop)
	return l
}

// PID is the actor's. Any goroutine, once the actor was spawned.
func (m *Mailbox) PID() *actor.PID { return m.invoker.(Place).Self() }

// Closed reports whether the actor has stopped. The consumer's goroutine.
func (m *Mailbox) Closed() bool { return m.closed }

// UserMessageCount is how many messages wait, system messages not counted. Any goroutine.
func (m *Mailbox) UserMessageCount() int { return int(m.data.Load() + m.other.Load()) }

// PostSystemMessage queues in the lifecycle lane. Any goroutine.
func (m *Mailbox) PostSystemMessage(msg any) {
	m.queues[Lifecycle].push(msg)
	m.wakeConsumer()
}

// PostUserMessage queues in the message's lane. Any goroutine; it never blocks. A message that the
// data lane has no room for is the Policy's. A nil message becomes a dead letter in its turn.
func (m *Mailbox) PostUserMessage(msg any) {
	bare := actor.UnwrapEnvelopeMessage(msg)
	r := m.asRetained(bare)
	if r == nil {
		switch c := bare.(type) {
		case actor.MessageBatch:
			m.postElements(c)
		case Laned:
			m.Post(c.Lane(), msg)
			return
		case *actor.PoisonPill:
			msg = m.poisonPill(msg)
		}
	}
	if !m.admitData(msg) {
		return
	}
	if r != nil {
		r.Retain()
	}
	m.queues[Data].push(msg)
	m.wakeConsumer()
}

// postElements posts the messages of a batch, before the batch itself, as Proto.Actor does.
func (m *Mailbox) postElements(b actor.MessageBatch) {
	for _, element := range b.GetMessages() {
		m.PostUserMessage(element)
	}
}

// poisonPill returns the message that replaces a PoisonPill.
func (m *Mailbox) poisonPill(pill any) any {
	if m.cfg.PoisonPill != nil {
		return m.cfg.PoisonPill
	}
	return pill
}

// admitData counts a message for the data lane, unless the Policy has answered it.
func (m *Mailbox) admitData(msg any) bool {
	limit := m.cfg.Limit
	if n := m.data.Add(1); n > limit && limit > 0 && !m.policy.Overflow(msg, n-limit) {
		m.data.Add(-1)
		return false
	}
	return true
}

// PostData queues a message in the data lane, whatever Config.Limit is. If it is Retained, its
// sender has taken a reference, which now belongs to the receiver. Any goroutine.
func (m *Mailbox) PostData(msg any) {
	m.data.Add(1)
	m.queues[Data].push(msg)
	m.wakeConsumer()
}

// Post queues a message that is not Retained in the event or the control lane. Any goroutine.
func (m *Mailbox) Post(lane Lane, msg any) {
	m.other.Add(1)
	m.queues[lane].push(msg)
	m.wakeConsumer()
}

// wakeConsumer schedules the consumer, unless it is scheduled.
func (m *Mailbox) wakeConsumer() {
	if m.state.Load() == idle && m.state.CompareAndSwap(idle, scheduled) {
		m.exec.scheduleMailbox(&m.self)
	}
}

// Refuse makes msg, which was sent to the actor, a dead letter. Any goroutine.
func (m *Mailbox) Refuse(msg any) {
	at := m.invoker.(Place)
	m.callUser("dead letter to", func() { at.ActorSystem().DeadLetter.SendUserMessage(at.Self(), msg) })
}

// asRetained returns a message without its envelope as one with references; nil: it has none.
func (m *Mailbox) asRetained(bare any) Retained {
	if m.cfg.Retained == nil {
		return nil
	}
	return m.cfg.Retained(bare)
}

// retainedIn calls asRetained for a message in its envelope.
func (m *Mailbox) retainedIn(msg any) Retained { return m.asRetained(actor.UnwrapEnvelopeMessage(msg)) }
