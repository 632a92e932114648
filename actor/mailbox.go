package actor

import (
	"errors"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// lane is a message's place in the order in which an actor gets what waits for it.
type lane uint8

// The lanes, first served first; FIFO inside each.
const (
	laneLifecycle lane = iota // Proto.Actor's system messages
	laneEvent                 // what the device tells: an end must not queue behind a thousand sends
	laneControl               // what ends an identifier from outside: a cancel, Shutdown
	laneData                  // commands, Sends, and whatever users send each other, in one order
	lanes
)

// laned is implemented by messages of ours that do not belong to the data lane.
type laned interface{ lane() lane }

// delivered is implemented by messages that hold something of ours (a receive buffer, a credit)
// until all their receivers are finished with them. Each place in a queue is a hold of its own: so
// an actor may forward what it receives, to any number of others.
type delivered interface {
	// keep takes a hold. Any goroutine that has the message.
	keep()
	// taken says that it waits no longer: it is received now, or answered.
	taken()
	// done gives one back, on where runs: after Receive has returned or panicked, or after the
	// message was answered. Not ok: the receiver has given back more than it had.
	done(where home) (ok bool)
}

// A mailbox is scheduled from the message that finds it idle until its consumer finds it empty.
const (
	idle int32 = iota
	scheduled
)

// mailbox is Proto.Actor's Mailbox for an actor that a loop runs, or (OffLoop) goroutines. Unlike Proto.Actor's own it serves
// lanes in strict order, gives its thread back after a budget of messages, refuses nil, and answers what is left when the actor
// stops.
//
// Everything below the counters belongs to the consumer: the loop's goroutine, or the goroutine that was started for it. Fields
// that are set by whoever makes the mailbox are set before it is given to a spawn.
type mailbox struct {
	queues [lanes]queue
	state  atomic.Int32
	data   atomic.Int32 // messages in the data lane
	other  atomic.Int32 // messages in the event and control lanes

	free      nodeChain
	limit     int32 // of the data lane; 0: none. Set by the maker
	busy      bool  // an invocation is under way
	suspended bool  // since a failure, until its supervisor has decided; and before Started
	closed    bool  // the actor has stopped
	last      bool  // it receives nothing more but what stops it
	inside    bool  // the actor is in Receive
	closes    bool  // the actor receives a PoisonPill as *poisoned; else it stops, as Proto.Actor has it. Set by the maker

	at      *atomic.Value // the reflect.Type of the message that is received; nil: nobody asks
	home    home
	self    eventloop.Runnable // itself, as the loop's watchdog is told
	outer   *mailbox           // in the middle of whose message this one's is received; nil: no actor's
	invoker actor.MessageInvoker
	process actor.Process // what the registry had when Stop came; not nil: the actor may be gone after any system message

	// overflow is asked on the posting goroutine about a message that would be the over-th beyond
	// limit. It has answered the message, or admits it: to its place in the data lane, so that a
	// sender's order is kept. Set by the maker, with limit.
	overflow func(msg any, over int32) (admit bool)
	// leftover answers a message that the stopped actor will not get, as it was posted (in its envelope). nil: a dead letter, so
	// that a sender gets what the PID of a dead actor gives, *actor.DeadLetterResponse. Set by the maker.
	leftover func(msg any)
}

var (
	_ actor.Mailbox      = (*mailbox)(nil)
	_ eventloop.Runnable = (*mailbox)(nil)
)

// newMailbox makes the mailbox of an actor that lives in h: a *loop, or goroutines.
func newMailbox(h home) *mailbox {
	m := &mailbox{home: h, suspended: true}
	if l := m.loop(); l != nil && l.traces {
		m.at = new(atomic.Value)
	}
	m.self = m
	return m
}

// local is what an actor's context tells its mailbox.
type local interface {
	Self() *actor.PID
	ActorSystem() *actor.ActorSystem
}

// RegisterHandlers is called once by the spawn, before Started is posted. The dispatcher is not used: the mailbox's home runs it.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
	if ctx, ok := invoker.(local); ok {
		boxesOf(ctx.ActorSystem()).add(ctx.Self().Id, m)
	}
	if l := m.loop(); l != nil && l.mail.closing.Load() {
		m.pass(lastCall{}) // whether lastCalls has seen it, or not
	}
}

// Start has nothing to do: Started is in the lifecycle lane by now.
func (m *mailbox) Start() {}

// UserMessageCount is how many messages wait, system messages not counted.
func (m *mailbox) UserMessageCount() int { return int(m.data.Load() + m.other.Load()) }

// PostSystemMessage queues in the lifecycle lane. Any goroutine.
func (m *mailbox) PostSystemMessage(msg any) {
	m.queues[laneLifecycle].push(msg)
	m.wake()
}

// PostUserMessage queues in the message's lane. Any goroutine; it never blocks. A message that the data lane has no
// room for is overflow's. A nil message becomes a dead letter in its turn.
func (m *mailbox) PostUserMessage(msg any) {
	var d delivered
	switch c := actor.UnwrapEnvelopeMessage(msg).(type) {
	case delivered:
		d = c
	case actor.MessageBatch:
		// As Proto.Actor has it: the elements, then the batch itself.
		for _, element := range c.GetMessages() {
			m.PostUserMessage(element)
		}
	case laned:
		if lane := c.lane(); lane != laneData {
			m.post(lane, msg)
			return
		}
	case *actor.PoisonPill:
		if m.closes {
			msg = &poisoned{}
		}
	}
	if n := m.data.Add(1); n > m.limit && m.limit > 0 && !m.overflow(msg, n-m.limit) {
		m.data.Add(-1)
		return
	}
	if d != nil {
		d.keep()
	}
	m.queues[laneData].push(msg)
	m.wake()
}

// pass queues a message in the data lane, with a hold of its sender's.
func (m *mailbox) pass(msg any) {
	m.data.Add(1)
	m.queues[laneData].push(msg)
	m.wake()
}

// post queues in the event or the control lane.
func (m *mailbox) post(lane lane, msg any) {
	m.other.Add(1)
	m.queues[lane].push(msg)
	m.wake()
}

// wake has the consumer come, unless it is on its way.
func (m *mailbox) wake() {
	if m.state.Load() == idle && m.state.CompareAndSwap(idle, scheduled) {
		m.home.schedule(m)
	}
}

// deliver is the device's way in: loop goroutine only. The actor gets the event within this call, behind the events that wait
// already: an event in a queue holds a receive buffer. One that is in the middle of an invocation or suspended gets it in its
// turn, through the event lane.
func (m *mailbox) deliver(msg any) {
	d := holds(msg)
	if d != nil {
		d.keep()
	}
	m.hand(msg, d)
}

// hand is deliver for a message with a hold of its sender's: d, which msg is or envelops. nil: it
// needs none.
func (m *mailbox) hand(msg any, d delivered) {
	if !m.enter() {
		m.post(laneEvent, msg)
		return
	}
	m.user(msg, d)
	m.leave()
}

// enter begins an invocation out of turn, behind what is more urgent. False: the message has to wait for its turn.
func (m *mailbox) enter() bool {
	if m.busy || m.suspended || m.closed {
		return false
	}
	m.busy = true
	if l := m.loop(); l != nil {
		m.interpose(l)
	}
	if m.queues[laneLifecycle].empty() && m.queues[laneEvent].empty() {
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
func (m *mailbox) leave() {
	if l := m.loop(); l != nil {
		m.withdraw(l)
	}
	m.busy = false
	m.home.turned()
}

// catchUp receives what is more urgent than an event of now, or older.
func (m *mailbox) catchUp() {
	for {
		if msg, ok := m.pop(laneLifecycle); ok {
			m.system(msg)
			continue
		}
		if m.suspended || m.closed {
			return
		}
		msg, ok := m.pop(laneEvent)
		if !ok {
			return
		}
		m.other.Add(-1)
		m.user(msg, holds(msg))
	}
}

// Run is the mailbox's turn: at most budget messages. It is the consumer's only entrance beside deliver.
func (m *mailbox) Run(budget int) (more bool) {
	finished := false
	defer func() {
		if !finished { // a panic outside of Receive, in a supervisor or a subscriber: it must not cost the rest of the queue
			m.end()
			m.busy = false
			m.home.schedule(m)
		}
	}()
	m.busy = true
	m.begin()
	over := m.last || m.home.over()
	m.turn(budget, over)
	m.home.turned()
	m.end()
	m.busy = false
	finished = true
	return m.rest(over || m.last)
}

func (m *mailbox) turn(budget int, over bool) {
	for range budget {
		if msg, ok := m.pop(laneLifecycle); ok {
			m.system(msg)
			continue
		}
		if m.held(over) {
			return
		}
		msg, ok := m.next()
		switch {
		case !ok:
			return
		case msg == lastCall{}:
			m.last, over = true, true
		case actor.UnwrapEnvelopeMessage(msg) == nil:
			m.refuse(msg)
		case m.closed || over && !poison(msg):
			m.answer(msg)
		default:
			m.user(msg, holds(msg))
		}
	}
}

// held reports whether the actor takes lifecycle messages only.
func (m *mailbox) held(over bool) bool { return m.suspended && !m.closed && !over }

// pop takes the oldest message of a lane.
func (m *mailbox) pop(l lane) (msg any, ok bool) { return m.queues[l].pop(&m.free) }

// next pops the most urgent user message.
func (m *mailbox) next() (msg any, ok bool) {
	if msg, ok = m.pop(laneEvent); !ok {
		msg, ok = m.pop(laneControl)
	}
	if ok {
		m.other.Add(-1)
		return msg, true
	}
	if msg, ok = m.pop(laneData); ok {
		m.data.Add(-1)
	}
	return msg, ok
}

// rest ends a turn: the mailbox is idle, or it has more. What was posted since the last look either is seen here, or its producer
// sees the mailbox idle. From idle on the mailbox may have another consumer: only what any goroutine may is looked at, and at worst
// for nothing.
func (m *mailbox) rest(over bool) (more bool) {
	m.free.put()
	lanes := m.queues[:]
	if m.held(over) {
		lanes = lanes[:laneLifecycle+1]
	}
	for i := range lanes {
		if lanes[i].out != nil {
			return true
		}
	}
	m.state.Store(idle)
	for i := range lanes {
		more = more || lanes[i].pushed()
	}
	return more && m.state.CompareAndSwap(idle, scheduled)
}

// system handles a lifecycle message, and notices when it was the actor's last.
func (m *mailbox) system(msg any) {
	switch msg.(type) {
	case *actor.SuspendMailbox:
		m.suspended = true
		return
	case *actor.ResumeMailbox:
		m.suspended = false
		return
	case *actor.Started:
		m.suspended = false
	case *actor.Stop:
		if ctx, ok := m.invoker.(local); ok && m.process == nil {
			m.process, _ = ctx.ActorSystem().ProcessRegistry.GetLocal(ctx.Self().Id)
		}
	}
	m.invokeSystem(msg)
	if m.process != nil && !m.closed {
		m.closeIfGone()
	}
}

// closeIfGone closes the mailbox when its actor has left the registry, which is how a stopped actor shows from outside. Its name
// may belong to a successor by now.
func (m *mailbox) closeIfGone() {
	ctx := m.invoker.(local)
	if p, _ := ctx.ActorSystem().ProcessRegistry.GetLocal(ctx.Self().Id); p == m.process {
		return
	}
	m.closed = true
	boxesOf(ctx.ActorSystem()).remove(ctx.Self().Id, m)
}

func (m *mailbox) invokeSystem(msg any) {
	defer m.received(msg, nil)
	m.inside = true
	m.note(msg)
	m.invoker.InvokeSystemMessage(msg)
	m.inside = false
}

// user has the actor receive a message, and tells d, if it is not nil. A panic in Receive is its supervisor's business.
func (m *mailbox) user(msg any, d delivered) {
	if d != nil {
		d.taken()
	}
	defer m.received(msg, d)
	m.inside = true
	m.note(msg)
	m.invoker.InvokeUserMessage(msg)
	m.inside = false
}

// errGoexit is the reason of a failure that was a runtime.Goexit (testing's FailNow): its goroutine
// has gone, the actor has not.
var errGoexit = errors.New("runtime.Goexit was called")

func (m *mailbox) received(msg any, d delivered) {
	if m.inside {
		m.inside = false
		reason := recover()
		if reason == nil {
			reason = errGoexit
			m.end()
			m.busy = false
			defer m.wake() // in the middle of somebody else's turn, which ends here
		}
		m.invoker.EscalateFailure(reason, msg)
	}
	if d != nil && !d.done(m.home) {
		m.invoker.EscalateFailure(errReleased, msg) // the actor's, and nobody else's
	}
}

// holds is what is to be told when msg's receiver is finished with it; nil: nothing.
func holds(msg any) delivered {
	d, _ := actor.UnwrapEnvelopeMessage(msg).(delivered)
	return d
}

// poison reports whether msg asks the actor to stop: an actor whose loop has ended can still do that.
func poison(msg any) bool {
	_, ok := actor.UnwrapEnvelopeMessage(msg).(*actor.PoisonPill)
	return ok
}

// answer tells the sender of a message that nobody will receive it.
func (m *mailbox) answer(msg any) {
	d := holds(msg)
	if d != nil {
		d.taken()
	}
	switch {
	case poison(msg): // it has what it asked for
	case m.leftover != nil:
		m.leftover(msg)
	default:
		m.refuse(msg)
	}
	if d != nil {
		d.done(m.home)
	}
}

// refuse makes msg a dead letter. Any goroutine.
func (m *mailbox) refuse(msg any) {
	ctx := m.invoker.(local)
	ctx.ActorSystem().DeadLetter.SendUserMessage(ctx.Self(), msg)
}

// own is the actor's PID. Any goroutine that knows it.
func (m *mailbox) own() *actor.PID { return m.invoker.(local).Self() }
