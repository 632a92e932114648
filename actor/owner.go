package actor

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// newOwner determines the shortest way from l to pid.
func (rt *Runtime) newOwner(l *loop, pid *actor.PID) owner {
	o := owner{pid: pid, box: rt.registry.Find(pid)}
	o.near = o.box != nil && o.box.Loop() == l.exec
	return o
}

// newHandler spawns the owner of one connection on l. The Props are the user's, and may fail. If
// nothing was spawned, the owner has no PID.
func (rt *Runtime) newHandler(l *loop, p *actor.Props) owner {
	name, spawned := rt.uniqueName("handler"), false
	defer func() {
		if !spawned { // the remains of a failed spawn would keep the name
			rt.sys.ProcessRegistry.Remove(actor.NewPID(rt.sys.Address(), name))
		}
	}()
	pid, err := rt.sys.Root.SpawnNamed(p.Clone(onLoop(l)), name)
	spawned = err == nil
	if err != nil {
		rt.log.Error("rdma: spawn of a handler", "err", err)
		return owner{}
	}
	o := rt.newOwner(l, pid)
	o.handler = true
	return o
}

// askListener calls code of the listener's configuration, which is the user's. If it panics, fail
// rejects the request.
func (l *loop) askListener(in *incoming, what string, fail func(*incoming), code func()) (ok bool) {
	defer func() { // also after a Goexit: no identifier stands for the request yet
		if !ok {
			fail(in)
		}
	}()
	return l.callUser(what+" of a listener", in.name, code)
}

// askHandler spawns the owner of a request's connection. Not ok: that has failed, and fail has
// rejected the request.
func (l *loop) askHandler(in *incoming, fail func(*incoming)) (o owner, ok bool) {
	ok = l.askListener(in, "Handler", fail, func() { o = l.rt.newHandler(l, in.handler) })
	if ok && o.pid == nil {
		fail(in)
		ok = false
	}
	return o, ok
}

// sendEnvelope queues a message; an owner that is near and idle receives it within the call, if
// inside is true. A mailbox that was found once is used even after its actor has stopped: it
// answers the message, and releases a *Received.
func (o *owner) sendEnvelope(l *loop, env *actor.MessageEnvelope, inside bool) {
	switch {
	case o.pid == nil:
	case o.near && inside:
		o.box.Deliver(env)
	case o.near:
		o.box.Post(mailbox.Event, env)
	case o.box != nil:
		o.box.PostUserMessage(env)
	default:
		l.el.Handoff()
		pid := o.pid // so that o need not be allocated
		l.tellUser("message to", pid.Id, func() { l.rt.sys.Root.Send(pid, env) })
	}
}

// deliverUncopied delivers a message without copying it. Not ok: the owner's mailbox does not
// report when it is finished with one.
func (o *owner) deliverUncopied(m *Received, sender *actor.PID) (ok bool) {
	if o.box == nil {
		return false
	}
	o.deliverReferenced(m, &m.env, sender)
	return true
}

// deliverReferenced delivers a message, with a reference that the caller has taken.
func (o *owner) deliverReferenced(m *Received, env *actor.MessageEnvelope, sender *actor.PID) {
	env.Message, env.Sender = m, sender
	if o.near {
		o.box.DeliverOwned(env, (*retainedMessage)(m))
	} else {
		o.box.PostData(env)
	}
}

// Reasons why an actor cannot be an owner.
var (
	// ErrRemoteOwner: the owner is an actor of another ActorSystem. Events are values of this
	// process.
	ErrRemoteOwner = errors.New("the owner is an actor of another ActorSystem: let an actor of this one own the identifier")
	// ErrMailbox: the owner was spawned with OnLoop or OffLoop, but does not have their mailbox.
	ErrMailbox = errors.New("the owner's OnLoop or OffLoop was undone by a WithMailbox behind it in its Props")
)

// CheckOwner returns ErrRemoteOwner or ErrMailbox if pid cannot own identifiers. A nil pid, no
// owner, is no error. CreateID and Handover call it; actors that own identifiers on behalf of
// another actor should call it for that one. Any goroutine may call it.
func (rt *Runtime) CheckOwner(pid *actor.PID) error {
	switch {
	case pid == nil:
		return nil
	case !rt.registry.Local(pid):
		return fmt.Errorf("owner %s at %s: %w (%w)", pid.Id, pid.Address, ErrRemoteOwner, unix.EREMOTE)
	case rt.registry.Undone(pid):
		return fmt.Errorf("owner %s: %w (%w)", pid.Id, ErrMailbox, unix.EINVAL)
	}
	return nil
}
