package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
)

// deliverEvent delivers the events of this loop's identifiers to their actors.
func (l *loop) deliverEvent(id *cmid.ID, ev cmid.Event, answers *cmid.Pending) {
	if r, ok := ev.(*cmid.ConnectRequest); ok {
		l.handleRequest(id, r)
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
	defer it.handlePanic()
	switch m := ctx.Message().(type) {
	case *Send:
		it.submitSend(m, ctx.Sender())
	case Command:
		it.handleCommand(m, ctx.Sender())
	case *reported:
		it.handleDeviceEvent(m)
	case *tick:
		it.handleDeadlines()
	case *lookedUp:
		it.handleLookedUp(m)
	case *dialTurn:
		m.a.resumeStep()
	case *brokenOff:
		it.handleBrokenOff(m)
	case *computed:
		m.of.sendReply(m)
	case *tlsStep:
		m.of.Done()
		if !it.isEnding() {
			it.handshake.continueTLS(m)
		}
	case *heard:
		it.handshake.handleHeard()
	case *evicted:
		if !it.isEnding() {
			m.of.giveWay()
		}
	case *drained:
		it.sayGoodbye(it.disconnectDrained)
	case *goodbyeLeft:
		it.goodbyeDone()
	case *refused:
		it.reportRefused()
	case *poisonPill:
		it.closeSilently(nil)
	case *cancelled:
		it.destroyID(m.cause)
	case *abort:
		it.destroyID(m.cause)
	case *shutdownAsked:
		it.closeSilently(ErrShutdown)
	case *actor.Started:
		it.startActor(ctx)
	case *actor.Terminated:
		it.handleTerminated(m.Who)
	case *actor.Stopping:
		it.handleStopping()
	case *actor.DeadLetterResponse:
		it.handleUndelivered(m.Target)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	case actor.MessageBatch: // its elements arrive separately
	case Event: // another identifier's answer: answering it would go on forever
	default:
		it.receiveByValue(m, ctx.Sender())
	}
}

// receiveByValue handles a Send or a command that was sent by value, and answers any other message.
func (it *ident) receiveByValue(m any, sender *actor.PID) {
	switch p := asPointer(m).(type) {
	case *Send:
		it.submitSend(p, sender)
	case Command:
		it.handleCommand(p, sender)
	default:
		it.answerUnknown(m, sender)
	}
}

// handlePanic handles a panic that has interrupted Receive, in this package or in user code that it
// calls. The supervisor then stops the actor, and Closed has the cause.
func (it *ident) handlePanic() {
	r := recover()
	if r == nil {
		return
	}
	defer panic(r)
	it.life.cause = &PanicError{r}
	it.failCommand()
}

// handleCommand executes a command, or refuses it.
func (it *ident) handleCommand(cmd Command, sender *actor.PID) {
	if isNilCommand(cmd) {
		it.answerSender(sender, it.nilCommandAnswer(cmd))
		return
	}
	if _, often := cmd.(oneSided); !often {
		it.recordFlight(FlightCommand, opName(cmd), 0)
	}
	if n := len(it.pendingCommands()) + len(it.closers); n >= 2*commandRoom || n >= commandRoom && !endsID(cmd) {
		it.answerFailed(cmd, sender, fmt.Errorf("%d commands wait for their answers: %w (%w)", n, ErrQueueFull, unix.ENOBUFS))
		return
	}
	if it.isEnding() {
		if _, ok := cmd.(*cmid.DestroyID); ok && !it.isGone() {
			it.awaitClosed(cmd, sender)
			return
		}
		it.answerSender(sender, it.endingAnswer(cmd))
		return
	}
	it.cmd, it.cmdSender = cmd, sender
	it.executeCommand(cmd, sender)
	it.cmd, it.cmdSender = nil, nil
}

func (it *ident) executeCommand(cmd Command, sender *actor.PID) {
	switch c := cmd.(type) {
	case *Handover:
		it.executeHandover(c, sender)
	case *Close:
		it.startClose(c, sender, false)
	case *Dial:
		it.startDial(c, sender, it)
	case *Serve:
		it.startServe(c, sender, it)
	case *Call:
		it.executeCall(c, sender)
	case oneSided:
		if err := it.tenancy.startOperation(c, sender); err != nil {
			it.answerSender(sender, it.accessError(c, err))
		}
	case *AllocMemory, *Grant, *Revoke, *FreeMemory:
		it.tenancy.executeMemoryCommand(cmd, sender)
	case *cmid.GetAddrInfo:
		it.getAddrInfo(c, sender)
	case *cmid.DestroyID:
		it.awaitClosed(cmd, sender)
		it.destroyID(nil)
	case *cmid.Connect:
		it.executeOnDevice(c, it.prepareConnect, it.replyOrDestroy(sender))
	case *cmid.Accept:
		switch a := it.handshake.asDeciding(); {
		case a != nil:
			a.acceptPeer(c, sender)
		case it.handshake.isUnreported():
			it.answerFailed(c, sender, errHandshaking)
		default:
			it.executeOnDevice(c, it.prepareAccept, it.replyOrDestroy(sender))
		}
	case *cmid.Reject:
		switch a := it.handshake.asDeciding(); {
		case a != nil:
			a.rejectPeer(c, sender)
		case it.handshake.isUnreported():
			it.answerFailed(c, sender, errHandshaking)
		default:
			it.rejectRequest(c, sender)
		}
	case *cmid.Disconnect:
		it.executeOnDevice(c, func(p *cmid.Pending) { it.sayGoodbye(func() { p.Proceed(c) }) }, it.replyTo(sender))
	case *cmid.SetOption:
		it.executeOnDevice(cmd, nil, it.replyTo(sender))
		it.options = append(it.options, c)
	case *cmid.Listen:
		if err := it.cfg.checkListen(); err != nil {
			it.answerFailed(cmd, sender, err)
			return
		}
		it.executeOnDevice(cmd, nil, it.replyTo(sender))
	case *cmid.BindAddr, *cmid.ResolveAddr, *cmid.ResolveRoute, *cmid.Establish, *cmid.Notify,
		*cmid.JoinMulticast, *cmid.LeaveMulticast, *cmid.SetIBPath, *cmid.ResolveIBService, *cmid.WriteCMEvent:
		it.executeOnDevice(cmd, nil, it.replyTo(sender))
	default:
		it.answerUnknown(cmd, sender)
	}
}

func (it *ident) handleTerminated(who *actor.PID) {
	if it.owner.pid != nil && it.l.rt.registry.Same(who, it.owner.pid) {
		it.setOwner(owner{})
		it.destroyID(ErrOwnerDied)
	}
}

// handleUndelivered ends an identifier whose owner has gone without notice: its handler of
// *actor.Stopped called runtime.Goexit on one of Proto.Actor's own goroutines.
func (it *ident) handleUndelivered(to *actor.PID) {
	if to == nil {
		return // not from Proto.Actor, which names the actor
	}
	if _, alive := it.l.rt.sys.ProcessRegistry.GetLocal(to.Id); !alive {
		it.handleTerminated(to)
	}
}

// Leftover answers a message that the actor will not receive. Messages that were queued before
// lastMessage are answered before Closed.
func (it *ident) Leftover(msg any) {
	_, m, sender := actor.UnwrapEnvelope(msg)
	switch m := asPointer(m).(type) {
	case *lastMessage:
		it.reportClosed()
	case *reported:
		it.l.orphanEvent(m.id, m.ev)
	case mailbox.Laned, *cancelled, *refused, actor.MessageBatch, Event:
	case *poisonPill:
		if !it.isGone() { // a loop that has ended: the actor can still stop
			it.l.rt.sys.Root.Stop(it.pid)
		}
	case *Send:
		if it.life.stage == lifeClosed {
			it.box.Refuse(msg)
			return
		}
		if it.answerMisused(m, sender) {
			return
		}
		it.unsent++
		m.sender = sender
		it.SendFailed(&m.out, datapath.Flushed())
	case Command:
		switch {
		case it.life.stage == lifeClosed:
			it.box.Refuse(msg)
		case isNilCommand(m):
			it.answerSender(sender, it.nilCommandAnswer(m))
		case endsID(m):
			it.awaitClosed(m, sender)
		default:
			it.answerSender(sender, it.endingAnswer(m))
		}
	default:
		it.box.Refuse(msg)
	}
}
