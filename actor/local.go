package actor

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

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
	case !rt.registry.Local(pid):
		return fmt.Errorf("owner %s at %s: %w (%w)", pid.Id, pid.Address, ErrRemoteOwner, unix.EREMOTE)
	case rt.registry.Undone(pid):
		return fmt.Errorf("owner %s: %w (%w)", pid.Id, ErrMailbox, unix.EINVAL)
	}
	return nil
}
