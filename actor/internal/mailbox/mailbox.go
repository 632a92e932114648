package mailbox

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// A mailbox is scheduled from the message that finds it idle until its consumer finds it empty.
const (
	idle int32 = iota
	scheduled
)

// Mailbox is Proto.Actor's Mailbox for an actor that an Executor runs. Unlike Proto.Actor's own it
// serves lanes in strict order, gives its thread back after a budget of messages, refuses nil, and
// answers what is left when the actor stops.
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
	suspended bool // since a failure, until its supervisor has decided; and before Started
	closed    bool // the actor has stopped
	last      bool // it receives nothing more but what stops it
	inside    bool // the actor is in Receive

	cfg     *Config
	at      *atomic.Value // the reflect.Type of the message that is received; nil: nobody asks
	exec    Executor
	self    eventloop.Runnable // itself, as the event loop's watchdog wants it
	outer   *Mailbox           // in the middle of whose message this one's is received; nil: no actor's
	invoker actor.MessageInvoker
	process actor.Process // what the system had when Stop came; not nil: the actor may be gone after any system message
}

var (
	_ actor.Mailbox      = (*Mailbox)(nil)
	_ eventloop.Runnable = (*Mailbox)(nil)
)

// New makes the mailbox of one actor that x runs.
func New(x Executor, c *Config) *Mailbox {
	m := &Mailbox{exec: x, cfg: c, suspended: true}
	if l := m.Loop(); l != nil && l.traces {
		m.at = new(atomic.Value)
	}
	m.self = m
	return m
}

// RegisterHandlers is called once by the spawn, before Started is posted. The dispatcher is not
// used: the executor runs the mailbox.
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
	if at, ok := invoker.(Place); ok {
		RegistryOf(at.ActorSystem()).add(at.Self().Id, m)
	}
	if l := m.Loop(); l != nil && l.closing.Load() {
		m.Pass(lastCall{}) // whether LastCalls has seen it, or not
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

// UserMessageCount is how many messages wait, system messages not counted. Any goroutine.
func (m *Mailbox) UserMessageCount() int { return int(m.data.Load() + m.other.Load()) }

// PostSystemMessage queues in the lifecycle lane. Any goroutine.
func (m *Mailbox) PostSystemMessage(msg any) {
	m.queues[Lifecycle].push(msg)
	m.wake()
}

// PostUserMessage queues in the message's lane. Any goroutine; it never blocks. A message that the
// data lane has no room for is the Policy's. A nil message becomes a dead letter in its turn.
func (m *Mailbox) PostUserMessage(msg any) {
	bare := actor.UnwrapEnvelopeMessage(msg)
	r := m.retained(bare)
	if r == nil {
		switch c := bare.(type) {
		case actor.MessageBatch:
			// As Proto.Actor has it: the elements, then the batch itself.
			for _, element := range c.GetMessages() {
				m.PostUserMessage(element)
			}
		case Laned:
			m.Post(c.Lane(), msg)
			return
		case *actor.PoisonPill:
			if m.cfg.Poison != nil {
				msg = m.cfg.Poison
			}
		}
	}
	limit := m.cfg.Limit
	if n := m.data.Add(1); n > limit && limit > 0 && !m.cfg.Policy.Overflow(msg, n-limit) {
		m.data.Add(-1)
		return
	}
	if r != nil {
		r.Retain()
	}
	m.queues[Data].push(msg)
	m.wake()
}

// Pass queues a message in the data lane, without a look at Config.Limit. If it is Retained, its
// sender has taken a hold, which is the receiver's now. Any goroutine.
func (m *Mailbox) Pass(msg any) {
	m.data.Add(1)
	m.queues[Data].push(msg)
	m.wake()
}

// Post queues a message that holds nothing in the event or the control lane. Any goroutine.
func (m *Mailbox) Post(lane Lane, msg any) {
	m.other.Add(1)
	m.queues[lane].push(msg)
	m.wake()
}

// wake has the consumer come, unless it is on its way.
func (m *Mailbox) wake() {
	if m.state.Load() == idle && m.state.CompareAndSwap(idle, scheduled) {
		m.exec.schedule(m)
	}
}

// Deliver is a device's way in: loop goroutine only. The actor gets the event within this call,
// behind the events that wait already: an event in a queue holds a receive buffer. One that is in
// the middle of an invocation or suspended gets it in its turn, through the event lane.
func (m *Mailbox) Deliver(msg any) {
	r := m.retainedIn(msg)
	if r != nil {
		r.Retain()
	}
	m.Hand(msg, r)
}

// Hand is Deliver for a message of which the sender has taken a hold: r, which msg is or envelops.
// nil: it holds nothing.
func (m *Mailbox) Hand(msg any, r Retained) {
	if !m.enter() {
		m.Post(Event, msg)
		return
	}
	m.user(msg, r)
	m.leave()
}

// enter begins an invocation out of turn, behind what is more urgent. False: the message has to wait
// for its turn.
func (m *Mailbox) enter() bool {
	if m.busy || m.suspended || m.closed {
		return false
	}
	m.busy = true
	if l := m.Loop(); l != nil {
		m.interpose(l)
	}
	if m.queues[Lifecycle].empty() && m.queues[Event].empty() {
		return true
	}
	m.catchUp()
	m.free.put()
	if m.suspended || m.closed {
		m.leave()
		return false
	}
	return true
}

// leave ends it.
func (m *Mailbox) leave() {
	if l := m.Loop(); l != nil {
		m.withdraw(l)
	}
	m.busy = false
	m.exec.turned()
}

// Refuse makes msg, which was sent to the actor, a dead letter. Any goroutine.
func (m *Mailbox) Refuse(msg any) {
	at := m.invoker.(Place)
	at.ActorSystem().DeadLetter.SendUserMessage(at.Self(), msg)
}

// retained is a message without its envelope as one that holds something; nil: it does not.
func (m *Mailbox) retained(bare any) Retained {
	if m.cfg.Retained == nil {
		return nil
	}
	return m.cfg.Retained(bare)
}

// retainedIn is the same of a message in its envelope.
func (m *Mailbox) retainedIn(msg any) Retained { return m.retained(actor.UnwrapEnvelopeMessage(msg)) }
