package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// ident is the actor of one rdma_cm_id. It belongs to its loop's goroutine; everything that happens to it comes through its mailbox,
// the messages of an established connection excepted.
type ident struct {
	rt   *Runtime
	l    *loop
	log  *slog.Logger
	opts idOptions
	pid  *actor.PID
	box  *mailbox.Mailbox
	ctx  actor.Context // from Started on

	id    *cmid.ID // nil until Started, and when it could not be made
	state states.State
	owner owner
	conn  *datapath.Conn

	// Of an identifier that came with a request.
	request   bool // nobody has answered it
	listener  cmid.Handle
	requestBy time.Time
	peerMode  datapath.Mode
	peerHello wire.Hello
	peerReads cmid.ConnParam // what its request says of Reads: of ours to it, and of its own

	reading bool // this side makes Reads, as far as the user's ConnParam and the peer's request go
	served  bool // and serves them

	asked   []*asked
	timer   *eventloop.Timer  // of the earliest deadline; nil until the first
	options []*cmid.SetOption // for Dial, which may need a new identifier
	release func() bool       // ends the watch of opts.ctx
	unsent  uint64            // sends that met no connection, or no room
	memory  int               // bytes of AllocMemory

	cmd       Command    // that is being executed and not answered
	cmdSender *actor.PID // whose it is
	inside    bool       // a message is being received

	refusals refusals
	piles    piles

	endTold      bool             // Disconnected or DeviceRemoval was told
	parting      func()           // what goes on when the goodbye has left; nil: nothing waits for it
	partingTimer *eventloop.Timer // of it; nil: the same
	leaving      *cmid.Disconnect // waits for it; nil: none

	composed bool // a Dial or Serve is under way
	counted  bool // in Runtime.count
	life     identLife
	cause    error // why it ended; nil: it was asked for
}

// asked is a command that was not answered yet.
type asked struct {
	cmd    Command
	sender *actor.PID
	then   func(Event) // part of a composite: gets the answer, instead of the sender
	due    time.Time   // zero: no deadline
}

// Receive is the actor's entrance.
func (it *ident) Receive(ctx actor.Context) {
	it.inside = true
	defer it.broken()
	switch m := ctx.Message().(type) {
	case *Send:
		it.submit(m, ctx.Sender())
	case Command:
		it.command(m, ctx.Sender())
	case *told:
		it.told(m)
	case *tick:
		it.expire()
	case *lookedUp:
		it.lookedUp(m)
	case *brokenOff:
		it.brokenOff()
	case *drained:
		it.farewell(it.disconnect)
	case *parted:
		it.part()
	case *refused:
		it.tellRefused()
	case *poisoned:
		it.poisoned()
	case *cancelled:
		it.destroy(m.cause)
	case *abort:
		it.destroy(m.cause)
	case *wind:
		it.wind()
	case *actor.Started:
		it.start(ctx)
	case *actor.Terminated:
		it.terminated(m.Who)
	case *actor.Stopping:
		it.stopping()
	case *actor.Stopped:
		it.box.PostUserMessage(&epitaph{}) // behind everything that waits
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.DeadLetterResponse:
	case actor.MessageBatch: // its elements have come by themselves
	case Event: // another identifier's answer: to answer it would go on for ever
	default:
		it.unknown(m, ctx.Sender())
	}
	it.inside = false
}

// broken notes what has ended the actor in the middle of a message: a panic in it, or in what it
// calls of the user's, or a runtime.Goexit there. The command that it was at is answered, Closed
// tells it, and the supervisor stops the actor.
func (it *ident) broken() {
	if !it.inside {
		return
	}
	it.inside = false
	r := recover()
	if r != nil {
		defer panic(r)
	} else {
		r = mailbox.ErrGoexit
	}
	it.cause = &PanicError{r}
	if cmd, waits := it.cmd, func(a *asked) bool { return a.cmd == it.cmd }; cmd != nil && !slices.ContainsFunc(it.asked, waits) {
		it.cmd = nil
		it.fail(cmd, it.cmdSender, it.cause)
	}
}

// PanicError is why an identifier was closed whose actor has panicked, or what it has called of the
// user's: a Call's Fn, an Observer, a Send's Renew. It is what the command is answered with that has
// done so, too.
type PanicError struct{ Value any }

func (e *PanicError) Error() string {
	return fmt.Sprintf("the identifier's actor has panicked: %v", e.Value)
}

// ErrStopped is why an identifier was closed whose actor was stopped by somebody.
var ErrStopped = errors.New("the identifier's actor was stopped")

// ErrOwnerDied is why an identifier was closed whose owner has stopped.
var ErrOwnerDied = errors.New("the owner has stopped")

// start makes the identifier, unless it came with a request, and watches the owner.
func (it *ident) start(ctx actor.Context) {
	it.ctx, it.pid = ctx, ctx.Self()
	it.l.ids[it] = struct{}{}
	it.watch()
	if it.opts.ctx != nil {
		box, c := it.box, it.opts.ctx
		it.release = context.AfterFunc(c, func() { box.PostUserMessage(&abort{context.Cause(c)}) })
	}
	if it.id != nil {
		if it.rt.closing.Load() { // Shutdown has looked at who is there, and this one was not
			it.box.PostUserMessage(&wind{})
		}
		return
	}
	if err := it.create(); err != nil {
		it.cause = err
		it.setLife(identGone)
		it.rt.sys.Root.Stop(it.pid)
	}
}

// create is rdma_create_id(3).
func (it *ident) create() error {
	switch {
	case it.cause != nil: // its owner is unfit
		return fmt.Errorf("create_id: %w", it.cause)
	case it.rt.closing.Load():
		return fmt.Errorf("create_id: %w (%w)", ErrShutdown, unix.ESHUTDOWN)
	case !it.counted:
		return fmt.Errorf("create_id: the runtime has its %d identifiers (WithLimits): %w", it.rt.cfg.limits.Connections, unix.EMFILE)
	}
	id, err := it.l.ch.CreateIDFor(it.opts.kind())
	if err != nil {
		return err
	}
	it.id = id
	id.Context = it
	it.state = id.State()
	return nil
}

func (it *ident) watch() {
	if it.ctx != nil && it.owner.pid != nil {
		it.ctx.Watch(it.owner.pid)
	}
}

func (it *ident) unwatch() {
	if it.ctx != nil && it.owner.pid != nil {
		it.ctx.Unwatch(it.owner.pid)
	}
}

func (it *ident) terminated(who *actor.PID) {
	if it.owner.pid != nil && it.rt.registry.Same(who, it.owner.pid) {
		it.setOwner(owner{})
		it.destroy(ErrOwnerDied)
	}
}

// command executes a command, or refuses it.
func (it *ident) command(cmd Command, sender *actor.PID) {
	if missing(cmd) {
		it.reply(sender, it.nothing(cmd))
		return
	}
	if n := len(it.asked); n >= 2*commandRoom || n >= commandRoom && !ends(cmd) {
		it.fail(cmd, sender, fmt.Errorf("%d commands wait for their answers: %w (%w)", n, ErrQueueFull, unix.ENOBUFS))
		return
	}
	if it.ending() {
		if _, ok := cmd.(*cmid.DestroyID); ok && !it.gone() {
			it.asked = append(it.asked, &asked{cmd: cmd, sender: sender})
			return
		}
		it.reply(sender, it.late(cmd))
		return
	}
	it.cmd, it.cmdSender = cmd, sender
	it.execute(cmd, sender)
	it.cmd, it.cmdSender = nil, nil
}

func (it *ident) execute(cmd Command, sender *actor.PID) {
	switch c := cmd.(type) {
	case *Handover:
		it.handover(c, sender)
	case *Close:
		it.close(c, sender, nil)
	case *Dial:
		it.dial(c, sender)
	case *Serve:
		it.serve(c, sender)
	case *Call:
		it.call(c, sender)
	case *Read, *Write, *FetchAdd, *CompareSwap:
		it.accessCommand(cmd, sender)
	case *AllocMemory, *Grant, *Revoke, *FreeMemory:
		it.memoryCommand(cmd, sender)
	case *cmid.GetAddrInfo:
		it.getAddrInfo(c, sender)
	case *cmid.DestroyID:
		it.asked = append(it.asked, &asked{cmd: cmd, sender: sender})
		it.destroy(nil)
	case *cmid.Connect:
		it.connect(c, sender, nil)
	case *cmid.Accept:
		it.accept(c, sender)
	case *cmid.Reject:
		it.reject(c, sender)
	case *cmid.Disconnect:
		it.leave(c, sender)
	case *cmid.SetOption:
		it.do(&asked{cmd: cmd, sender: sender})
		it.options = append(it.options, c)
	case *cmid.BindAddr, *cmid.ResolveAddr, *cmid.ResolveRoute, *cmid.Listen, *cmid.Establish, *cmid.Notify,
		*cmid.JoinMulticast, *cmid.LeaveMulticast, *cmid.SetIBPath, *cmid.ResolveIBService, *cmid.WriteCMEvent:
		it.do(&asked{cmd: cmd, sender: sender})
	default:
		it.unknown(cmd, sender)
	}
}

// do has the identifier execute a command, and waits for its answer.
func (it *ident) do(a *asked) {
	it.asked = append(it.asked, a)
	it.begin(a)
}

// begin is do for a command that waits already.
func (it *ident) begin(a *asked) {
	if ev := it.id.Do(a.cmd); ev != nil {
		it.moved(a.cmd.Op())
		it.answer(a.cmd, ev)
		return
	}
	it.moved(a.cmd.Op())
	it.setDeadline(a)
}

// take removes a command from those that wait.
func (it *ident) take(cmd Command) *asked {
	for i, a := range it.asked {
		if a.cmd == cmd {
			it.asked = append(it.asked[:i], it.asked[i+1:]...)
			it.rearm()
			return a
		}
	}
	return nil
}

// answer ends a command that waits: its sender, the composite it is part of, or the owner is told.
func (it *ident) answer(cmd Command, ev Event) {
	a := it.take(cmd)
	switch {
	case a == nil:
		it.tell(ev)
	case a.then != nil:
		a.then(ev)
	default:
		if lifecycle(ev) && !it.owns(a.sender) {
			it.tell(ev) // the owner is always told of these
		}
		it.reply(a.sender, ev)
	}
}

// lifecycle reports whether the owner is told of ev also when somebody else has asked for it.
func lifecycle(ev Event) bool {
	switch ev.(type) {
	case *cmid.Established, *cmid.Disconnected, *cmid.DeviceRemoval:
		return true
	}
	return false
}

// moved tells of a transition and what has caused it: a command (states.Op) or the device's event (states.Kind).
func (it *ident) moved(cause fmt.Stringer) {
	now := it.id.State()
	if now == it.state {
		return
	}
	from := it.state
	it.state = now
	if o := it.rt.cfg.observer; o != nil {
		o.Transition(it.pid, it.id.Handle(), from, now)
	}
	if it.log.Enabled(context.Background(), slog.LevelDebug) {
		it.log.Debug("rdma: "+now.String(), it.logKeys(cause, "from", from.String())...)
	}
}

func (it *ident) logKeys(op fmt.Stringer, more ...any) []any {
	in := it.id.Info()
	return append([]any{
		"id", uint64(it.id.Handle()), "state", it.id.State().String(), "op", op.String(),
		"local", in.Local.String(), "peer", in.Peer.String(), "device", in.Device,
	}, more...)
}

// submit takes a message for the peer.
func (it *ident) submit(s *Send, sender *actor.PID) {
	if it.misused(s, sender) {
		return
	}
	s.out.Take()
	s.sender = sender
	if it.conn == nil || it.ending() {
		it.unsent++
		it.turnDown(sender, 1, s.Len(), datapath.ErrNotConnected, datapath.ErrNotConnected)
		s.out.Recycle()
		return
	}
	it.conn.Submit(s.out.As(s.Notify, s.Renew))
}

// misused answers a Send that must not get into the pool.
func (it *ident) misused(s *Send, sender *actor.PID) bool {
	if s.usable() {
		return false
	}
	f := it.failure(nil, "send", fmt.Errorf("not made by NewSend, or sent before: %w", unix.EINVAL))
	it.reply(sender, &SendFailed{FailureBase: f, Sends: 1})
	return true
}

// sendFailed answers a Send that will not arrive for certain.
func (it *ident) sendFailed(s *Send, err error) {
	ev := &SendFailed{FailureBase: it.failure(nil, "send", err), Bytes: s.Len(), Sends: 1}
	ev.History = nil // a thousand of them say the same
	it.reply(s.sender, ev)
	s.out.Recycle()
}

func (it *ident) handover(c *Handover, sender *actor.PID) {
	if c.To == nil {
		it.fail(c, sender, fmt.Errorf("Handover.To is nil: %w", unix.EINVAL))
		return
	}
	if err := it.rt.CheckOwner(c.To); err != nil {
		it.fail(c, sender, err)
		return
	}
	was := it.owner
	to := sender
	if to == nil {
		to = was.pid
	}
	it.unwatch()
	it.setOwner(it.rt.newOwner(it.l, c.To))
	it.watch()
	done := &cmid.Done{EventBase: it.base(), Command: c}
	switch {
	case to == nil:
	case was.pid != nil && it.rt.registry.Same(to, was.pid):
		was.send(it.l, &actor.MessageEnvelope{Message: done, Sender: it.pid})
	default:
		it.reply(to, done)
	}
}

// call lets the owner at the plain identifier.
func (it *ident) call(c *Call, sender *actor.PID) {
	if c.Fn == nil {
		it.fail(c, sender, fmt.Errorf("Call.Fn is nil: %w", unix.EINVAL))
		return
	}
	if err := c.Fn(it.id); err != nil {
		it.fail(c, sender, err)
		return
	}
	it.reply(sender, &cmid.Done{EventBase: it.base(), Command: c})
}
