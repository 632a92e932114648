package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
)

// sink delivers the events of this loop's identifiers to their actors.
func (l *loop) sink(id *cmid.ID, ev cmid.Event, answers *cmid.Pending) {
	if r, ok := ev.(*cmid.ConnectRequest); ok {
		l.request(id, r)
		return
	}
	if it, ok := id.Context.(*ident); ok {
		it.box.Deliver(&reported{id, ev, answers})
		return
	}
	answers.Answer(ev)
	l.orphanEvent(id, ev)
}

// Receive implements actor.Actor.
func (it *ident) Receive(ctx actor.Context) {
	defer it.panicked()
	switch m := ctx.Message().(type) {
	case *Send:
		it.submit(m, ctx.Sender())
	case Command:
		it.command(m, ctx.Sender())
	case *reported:
		it.deviceEvent(m)
	case *tick:
		it.expire()
	case *lookedUp:
		it.lookedUp(m)
	case *dialTurn:
		m.a.resume()
	case *brokenOff:
		it.brokenOff(m)
	case *computed:
		m.of.sendReply(m)
	case *tlsStep:
		m.of.Done()
		if !it.ending() {
			it.handshake.stepped(m)
		}
	case *heard:
		it.handshake.heardFirst()
	case *evicted:
		if !it.ending() {
			m.of.giveWay()
		}
	case *drained:
		it.sayGoodbye(it.disconnect)
	case *goodbyeLeft:
		it.goodbyeDone()
	case *refused:
		it.reportRefused()
	case *poisonPill:
		it.closeSilently(nil)
	case *cancelled:
		it.destroy(m.cause)
	case *abort:
		it.destroy(m.cause)
	case *shutdownAsked:
		it.closeSilently(ErrShutdown)
	case *actor.Started:
		it.start(ctx)
	case *actor.Terminated:
		it.terminated(m.Who)
	case *actor.Stopping:
		it.stopping()
	case *actor.DeadLetterResponse:
		it.undelivered(m.Target)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	case actor.MessageBatch: // its elements arrive separately
	case Event: // another identifier's answer: answering it would go on forever
	default:
		it.receiveValue(m, ctx.Sender())
	}
}

// receiveValue handles a Send or a command that was sent by value, and answers any other message.
func (it *ident) receiveValue(m any, sender *actor.PID) {
	switch p := asPointer(m).(type) {
	case *Send:
		it.submit(p, sender)
	case Command:
		it.command(p, sender)
	default:
		it.unknown(m, sender)
	}
}

// panicked handles a panic that has interrupted Receive, in this package or in user code that it
// calls. The supervisor then stops the actor, and Closed has the cause.
func (it *ident) panicked() {
	r := recover()
	if r == nil {
		return
	}
	defer panic(r)
	it.life.cause = &PanicError{r}
	it.failCommand()
}

// command executes a command, or refuses it.
func (it *ident) command(cmd Command, sender *actor.PID) {
	if missing(cmd) {
		it.reply(sender, it.nothing(cmd))
		return
	}
	if _, often := cmd.(oneSided); !often {
		it.note(FlightCommand, opName(cmd), 0)
	}
	if n := len(it.pending()) + len(it.closers); n >= 2*commandRoom || n >= commandRoom && !ends(cmd) {
		it.fail(cmd, sender, fmt.Errorf("%d commands wait for their answers: %w (%w)", n, ErrQueueFull, unix.ENOBUFS))
		return
	}
	if it.ending() {
		if _, ok := cmd.(*cmid.DestroyID); ok && !it.gone() {
			it.awaitClosed(cmd, sender)
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
		it.close(c, sender, false)
	case *Dial:
		it.dial(c, sender, it)
	case *Serve:
		it.serve(c, sender, it)
	case *Call:
		it.call(c, sender)
	case oneSided:
		if err := it.tenancy.access(c, sender); err != nil {
			it.reply(sender, it.accessError(c, err))
		}
	case *AllocMemory, *Grant, *Revoke, *FreeMemory:
		it.tenancy.command(cmd, sender)
	case *cmid.GetAddrInfo:
		it.getAddrInfo(c, sender)
	case *cmid.DestroyID:
		it.awaitClosed(cmd, sender)
		it.destroy(nil)
	case *cmid.Connect:
		it.do(c, it.connect, it.replyOrDestroy(sender))
	case *cmid.Accept:
		switch a := it.handshake.deciding(); {
		case a != nil:
			a.accept(c, sender)
		case it.handshake.unheard():
			it.fail(c, sender, errHandshaking)
		default:
			it.do(c, it.accept, it.replyOrDestroy(sender))
		}
	case *cmid.Reject:
		switch a := it.handshake.deciding(); {
		case a != nil:
			a.reject(c, sender)
		case it.handshake.unheard():
			it.fail(c, sender, errHandshaking)
		default:
			it.reject(c, sender)
		}
	case *cmid.Disconnect:
		it.do(c, func(p *cmid.Pending) { it.sayGoodbye(func() { p.Proceed(c) }) }, it.replyTo(sender))
	case *cmid.SetOption:
		it.do(cmd, nil, it.replyTo(sender))
		it.options = append(it.options, c)
	case *cmid.Listen:
		if err := it.cfg.canListen(); err != nil {
			it.fail(cmd, sender, err)
			return
		}
		it.do(cmd, nil, it.replyTo(sender))
	case *cmid.BindAddr, *cmid.ResolveAddr, *cmid.ResolveRoute, *cmid.Establish, *cmid.Notify,
		*cmid.JoinMulticast, *cmid.LeaveMulticast, *cmid.SetIBPath, *cmid.ResolveIBService, *cmid.WriteCMEvent:
		it.do(cmd, nil, it.replyTo(sender))
	default:
		it.unknown(cmd, sender)
	}
}

func (it *ident) terminated(who *actor.PID) {
	if it.owner.pid != nil && it.l.rt.registry.Same(who, it.owner.pid) {
		it.setOwner(owner{})
		it.destroy(ErrOwnerDied)
	}
}

// undelivered ends an identifier whose owner has gone without notice: by a runtime.Goexit in
// *actor.Stopped on one of Proto.Actor's own goroutines.
func (it *ident) undelivered(to *actor.PID) {
	if to == nil {
		return // not from Proto.Actor, which names the actor
	}
	if _, alive := it.l.rt.sys.ProcessRegistry.GetLocal(to.Id); !alive {
		it.terminated(to)
	}
}

// Leftover answers a message that the actor will not receive. Messages that were queued before
// lastMessage are answered before Closed.
func (it *ident) Leftover(msg any) {
	_, m, sender := actor.UnwrapEnvelope(msg)
	switch m := asPointer(m).(type) {
	case *lastMessage:
		it.end()
	case *reported:
		it.l.orphanEvent(m.id, m.ev)
	case mailbox.Laned, *cancelled, *refused, actor.MessageBatch, Event:
	case *poisonPill:
		if !it.gone() { // a loop that has ended: the actor can still stop
			it.l.rt.sys.Root.Stop(it.pid)
		}
	case *Send:
		if it.life.stage == lifeClosed {
			it.box.Refuse(msg)
			return
		}
		if it.misused(m, sender) {
			return
		}
		it.unsent++
		m.sender = sender
		it.SendFailed(&m.out, datapath.Flushed())
	case Command:
		switch {
		case it.life.stage == lifeClosed:
			it.box.Refuse(msg)
		case missing(m):
			it.reply(sender, it.nothing(m))
		case ends(m):
			it.awaitClosed(m, sender)
		default:
			it.reply(sender, it.late(m))
		}
	default:
		it.box.Refuse(msg)
	}
}
