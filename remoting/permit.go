package remoting

import (
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// checkAccess returns nil if the peer may do that.
func (in *receiving) checkAccess(t *target, a Access) error {
	if t.asked&a.accessBit() == 0 {
		t.asked |= a.accessBit()
		if in.isExposed(a, t.pid.Id) {
			t.exposed |= a.accessBit()
		}
	}
	if t.exposed&a.accessBit() != 0 || in.isGranted(t.pid.Id, a) {
		return nil
	}
	return ErrDenied
}

// checkSender returns an error if the peer may not send a message of that sender. Who answers it
// sends to its sender. If that is of this node, the peer has to be one that may do so itself.
func (in *receiving) checkSender(s *frame.PID) error {
	if s.Address == "" || !in.host.isLocal(s.Address) {
		return nil
	}
	if tables.IsFuture(s.ID) {
		if _, ok := in.findFuture(s.ID, s.Request, (*tables.Futures).Find); ok {
			return nil
		}
	} else if in.checkAccess(in.targetOf(s.ID), Reach) == nil {
		return nil
	}
	return fmt.Errorf("the sender is %s of this node: %w", plain.Quote(s.ID), ErrDenied)
}

// checkSenderNode returns an error if the peer may not name a sender at that node.
func (in *receiving) checkSenderNode(addr string) error {
	switch {
	case addr == "" || addr == in.who.Name || in.host.isLocal(addr):
		return nil
	case in.host.cfg.OwnSenders:
		return fmt.Errorf("its sender is at another node (Config.OwnSenders): %w", ErrDenied)
	case !in.roster.mayName(addr, in.who.At.Source(), in.local.Now()):
		return fmt.Errorf("its sender is at another node, and too many have been named: %w", ErrDenied)
	}
	return nil
}

// isExposed reports whether Expose and Config.Allow let the peer do that.
func (in *receiving) isExposed(a Access, name string) bool {
	return !isForbidden(name) && in.host.rules.Load().allowsAccess(a, name) && in.isAllowed(a, name)
}

// isAllowed asks Config.Allow, which is the user's.
func (in *receiving) isAllowed(a Access, name string) (ok bool) {
	if in.host.cfg.Allow == nil {
		return true
	}
	defer func() {
		if v := recover(); v != nil {
			in.host.rt.Logger().Error("remoting: Allow has panicked", "panic", v)
			ok = false
		}
	}()
	in.local.Do(allowTask, func() { ok = in.host.cfg.Allow(in.who, a, name) == nil })
	return ok
}

var allowTask = rdma.NewTask("remoting.Config.Allow")

// isGranted reports whether an actor that has sent the peer something is still that actor.
func (in *receiving) isGranted(id string, a Access) bool {
	proc, ok := in.host.sys.ProcessRegistry.GetLocal(id)
	if !ok {
		return false
	}
	in.p.mu.Lock()
	defer in.p.mu.Unlock()
	return in.p.grants.Has(id, proc, a.accessBit())
}
