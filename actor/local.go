package actor

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// nonhost is the address of an ActorSystem before Proto.Actor's remote.Start gives it another. PIDs
// keep the address that they were made with, and the registry takes both for its own: so does who
// compares PIDs here.
const nonhost = "nonhost"

// local reports whether pid names an actor of this ActorSystem, alive or dead.
func (rt *Runtime) local(pid *actor.PID) bool {
	return pid.Address == rt.sys.Address() || pid.Address == nonhost
}

// same reports whether two PIDs name the same actor.
func (rt *Runtime) same(a, b *actor.PID) bool {
	return a == b || a.Id == b.Id && a.RequestId == b.RequestId && (a.Address == b.Address || rt.local(a) && rt.local(b))
}

// What an owner cannot be.
var (
	// ErrRemoteOwner: the owner is an actor of another ActorSystem. Events are values of this
	// process.
	ErrRemoteOwner = errors.New("the owner is an actor of another ActorSystem: let an actor of this one own the identifier")
	// ErrMailbox: the owner was spawned with OnLoop or OffLoop, but does not have their mailbox.
	ErrMailbox = errors.New("the owner's OnLoop or OffLoop was undone by a WithMailbox behind it in its Props")
)

// CheckOwner says why pid cannot be an owner, ErrRemoteOwner or ErrMailbox; nil: it can, as nobody
// (nil) can. CreateID and Handover ask it; so does what owns identifiers for somebody else. Any
// goroutine.
func (rt *Runtime) CheckOwner(pid *actor.PID) error {
	switch {
	case pid == nil:
		return nil
	case !rt.local(pid):
		return fmt.Errorf("owner %s at %s: %w (%w)", pid.Id, pid.Address, ErrRemoteOwner, unix.EREMOTE)
	case rt.box(pid) == nil && rt.boxes.missing(rt.sys.ProcessRegistry, pid.Id):
		return fmt.Errorf("owner %s: %w (%w)", pid.Id, ErrMailbox, unix.EINVAL)
	}
	return nil
}
