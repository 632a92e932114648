package inbox

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Config sets the resources of an Inbox. Zero means the default.
type Config struct {
	System  *actor.ActorSystem
	Runtime *rdma.Runtime
	// Window is how many bytes a target may have that it has not consumed; 256 KiB.
	Window int
	// Bytes is how many of a peer's bytes may wait for all targets; 8 MiB.
	Bytes int
	// Patience is how long one slow target may stop all others; 10 s.
	Patience time.Duration
	// Refuse is called once for each message that was refused, of so many bytes, in Receive of the
	// inbox's actor. It may use neither the Inbox nor the message's envelope.
	Refuse func(target *actor.PID, msg any, bytes int, sender *actor.PID, why error)
	// Meter is called when the peer should send less to a target, or may send more. nil: it cannot
	// be notified. It may not use the Inbox.
	Meter func(target string, what Metering)
}

const (
	defaultWindow   = 256 << 10
	defaultBytes    = 8 << 20
	defaultPatience = 10 * time.Second
	// overhead is the cost of a message beside its size: an envelope, PIDs, its place in a queue.
	overhead = 128
)

// Inbox hands the messages of one peer to local actors.
type Inbox struct {
	cfg           Config
	window, bytes int64
	ctx           actor.Context
	local         rdma.Local
	self          *actor.PID
	home          actor.Process // of the actor that the inbox belongs to
	answers       *touched
	kinds         *kinds
	lines         map[string]*line
	order         []*line      // all of lines, oldest first
	future        reflect.Type // of a future's process, once there was one
	limit         int          // of lines, before idle ones are looked for
	born          uint64       // lines ever made
	slow          []*line      // those in which something waits, or that are refused
	nobody        *line        // of all names that no process has
	recent        recent
	pending       int64 // bytes that are not consumed, as far as is known
	retained      []*rdma.Received
	full          bool
	left          bool      // the peer has left
	since         time.Time // full, or left
	ticking       bool
	wakeup        *woken
	tick          *ticked
	woken         atomic.Bool // a wakeup is on its way
	closed        bool
	failures      sync.Mutex // of failed
	failed        []failure
	pause         time.Duration // between two ticks
}

// recent is the actor that the last user message was for. It need not be looked up for the next one
// of the same RDMA message.
type recent struct {
	target  *actor.PID
	process actor.Process
	line    *line
}

// woken and ticked are the messages of an Inbox to its actor.
type (
	woken  struct{ in *Inbox }
	ticked struct{ in *Inbox }
)

// IgnoreDeadLetterLogging: one may come when its actor has stopped.
func (*woken) IgnoreDeadLetterLogging() {}

// failure is a message at which foreign code has panicked off the loop.
type failure struct {
	m   message
	why error
}

// message is one message on its way.
type message struct {
	target *actor.PID
	msg    any // in its envelope, if it has one
	cost   int64
	system bool
}

// mustDeliver reports whether a message is never refused.
func (m *message) mustDeliver() bool {
	_, ok := m.msg.(*actor.Unwatch)
	return ok
}

// New makes the inbox of an OnLoop actor. It is called in Receive.
func New(ctx actor.Context, cfg Config) *Inbox {
	if cfg.Window == 0 {
		cfg.Window = defaultWindow
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = defaultBytes
	}
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	in := &Inbox{
		cfg: cfg, window: int64(cfg.Window), bytes: int64(cfg.Bytes),
		ctx: ctx, local: rdma.LocalOf(ctx), self: ctx.Self(), answers: touchedOf(cfg.System), kinds: protoActor,
		lines: make(map[string]*line), limit: fewLines,
		pause: min(max(cfg.Patience/8, time.Millisecond), time.Second),
	}
	in.home, _ = cfg.System.ProcessRegistry.GetLocal(in.self.Id)
	in.wakeup, in.tick = &woken{in}, &ticked{in}
	in.nobody = &line{in: in}
	in.order = append(in.order, in.nobody)
	return in
}

// Begin marks the start of an RDMA message. Among its consecutive messages for the same target,
// only the first one looks for the process.
func (in *Inbox) Begin() { in.recent = recent{} }

// Deliver hands a message of the peer to a local actor, now or when that has room. size is its size
// on the wire. from is the RDMA message that it came in; it is retained while the inbox is full.
func (in *Inbox) Deliver(target *actor.PID, msg any, size int, from *rdma.Received) {
	in.acceptMessage(message{target: target, msg: msg, cost: int64(size) + overhead}, from)
}

// DeliverSystem is Deliver for a system message (Watch, Stop, Terminated). It does not wait for
// user messages, and the RDMA message that it came in is not retained. It is refused if there are
// two Windows that its target has not consumed, besides a message that is larger, or twice the
// Bytes. An Unwatch is not refused before Close: their number is bounded by the watches, and
// without it an actor would keep its watcher forever.
func (in *Inbox) DeliverSystem(target *actor.PID, msg any, size int) {
	in.acceptMessage(message{target: target, msg: msg, cost: int64(size) + overhead, system: true}, nil)
}

func (in *Inbox) acceptMessage(m message, from *rdma.Received) {
	switch {
	case in.closed:
		in.reportRefused(m, ErrClosed)
		return
	case actor.UnwrapEnvelopeMessage(m.msg) == nil:
		in.reportRefused(m, ErrNothing)
		return
	case m.system && in.pending >= 2*in.bytes && !m.mustDeliver():
		in.reportRefused(m, ErrSlow)
		return
	}
	if r := &in.recent; r.target == m.target && !m.system {
		r.line.acceptUser(r.process, m)
		in.checkFull(from)
		return
	}
	process := in.findProcess(m.target)
	if process != nil && in.isFuture(process) {
		in.callGuarded(m, func() { sendTo(process, m) })
		in.local.Woke()
		return
	}
	l := in.lineOf(m.target, process)
	if m.system {
		in.recent = recent{} // it may be the end of the actor
		l.sendSystem(process, m)
	} else {
		in.recent = recent{m.target, process, l}
		l.acceptUser(process, m)
	}
	in.checkFull(from)
}

// findProcess returns the process of a local name; nil: none that a peer can reach.
func (in *Inbox) findProcess(pid *actor.PID) actor.Process {
	p, ok := in.cfg.System.ProcessRegistry.GetLocal(pid.Id)
	if !ok || p == actor.Process(in.answers) {
		return nil
	}
	return p
}

// sendTo sends a message to a process.
func sendTo(p actor.Process, m message) {
	if m.system {
		p.SendSystemMessage(m.target, m.msg)
	} else {
		p.SendUserMessage(m.target, m.msg)
	}
}

// callGuarded calls a function that may run foreign code. A panic in it costs this message only.
func (in *Inbox) callGuarded(m message, do func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			in.reportRefused(m, &rdma.PanicError{Value: v})
		}
	}()
	do()
	return true
}

// reportRefused reports that a message is not delivered.
func (in *Inbox) reportRefused(m message, why error) {
	if in.cfg.Refuse != nil {
		_, msg, sender := actor.UnwrapEnvelope(m.msg)
		in.cfg.Refuse(m.target, msg, int(m.cost), sender, why)
	}
}

// Receive handles the messages of the inbox to its actor. Not taken: the message is not from this
// inbox.
func (in *Inbox) Receive(ctx actor.Context) (taken bool) {
	switch m := ctx.Message().(type) {
	case *woken:
		if m.in != in {
			return false
		}
		in.woken.Store(false)
		in.sendWaiting()
	case *ticked:
		if m.in != in {
			return false
		}
		in.ticking = false
		in.lookAround()
	default:
		return false
	}
	return true
}

// wakeActor wakes the inbox's actor. Any goroutine.
func (in *Inbox) wakeActor() {
	if in.woken.CompareAndSwap(false, true) {
		in.home.SendUserMessage(in.self, in.wakeup)
	}
}

// queueFailure queues a failure that occurred off the loop. Any goroutine.
func (in *Inbox) queueFailure(m message, why error) {
	in.failures.Lock()
	in.failed = append(in.failed, failure{m, why})
	in.failures.Unlock()
	in.wakeActor()
}

// reportFailed reports the failures off the loop.
func (in *Inbox) reportFailed() {
	in.failures.Lock()
	failed := in.failed
	in.failed = nil
	in.failures.Unlock()
	for _, f := range failed {
		in.reportRefused(f.m, f.why)
	}
}

// sendWaiting sends waiting messages for which there is room now.
func (in *Inbox) sendWaiting() {
	in.reportFailed()
	if in.closed {
		return
	}
	in.pumpSlow()
	in.tryReopen()
}

// Close refuses the messages that wait for room, and releases the retained ones. Targets still
// receive the messages that were already passed to them, and all system messages. The inbox refuses
// everything from now on.
func (in *Inbox) Close() {
	if in.closed {
		return
	}
	in.closed = true
	in.reportFailed()
	for _, l := range in.order {
		l.rejectWaiting(ErrClosed)
		if l.route != nil {
			l.route.release()
		}
	}
	in.releaseRetained()
	in.lines, in.order, in.slow, in.recent = nil, nil, nil, recent{}
}
