package ucm

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
)

// joinMulticast joins a group, as rdma_join_multicast(3) and its _ex form do.
func (id *driverID) joinMulticast(c *cmid.JoinMulticast) error {
	in := id.in
	sa, err := kernelSockaddr(c.Addr)
	if err != nil {
		return err
	}
	flags := uint16(uabi.McJoinFlagFullMember)
	if c.SendOnly {
		flags = uabi.McJoinFlagSendOnlyFullMember
	}
	g := &group{id: id, h: in.up.NewHandle(), addr: c.Addr, sendOnly: c.SendOnly}
	if g.kid, err = in.file.JoinMulticast(uint64(g.h), id.kid, &sa, flags); err != nil {
		return err
	}
	in.groups[g.h] = g
	id.groups = append(id.groups, g)
	return nil
}

// leaveMulticast leaves a group, as rdma_leave_multicast(3) does. EADDRNOTAVAIL for a group that
// was not joined.
func (id *driverID) leaveMulticast(a cmid.Addr) error {
	for _, g := range id.groups {
		if g.addr.Equal(a) {
			g.removeGroup()
			if g.attached && id.qp != nil {
				_ = id.qp.Detach(g.gid, g.lid) // the queue pair may have been destroyed
			}
			_, err := id.in.file.LeaveMulticast(g.kid)
			return err
		}
	}
	return unix.EADDRNOTAVAIL
}

func (g *group) removeGroup() {
	delete(g.id.in.groups, g.h)
	for i, other := range g.id.groups {
		if other == g {
			g.id.groups = append(g.id.groups[:i], g.id.groups[i+1:]...)
			return
		}
	}
}

// deliverEvent takes an event of the membership: from now on the queue pair receives the group's
// messages.
func (g *group) deliverEvent(ev *uabi.EventResp) {
	id, in := g.id, g.id.in
	if ev.Event >= uint32(states.NumKernelKinds) {
		return
	}
	in.decodeEvent(true, ev)
	in.event.Addr = g.addr
	switch in.event.Kind {
	case states.KindMulticastJoin:
		g.gid, g.lid = in.event.AH.GRH.DGID, in.event.AH.DLID
		if id.qp != nil && !g.sendOnly {
			if err := id.qp.Attach(g.gid, g.lid); err != nil {
				in.event.Kind, in.event.Err, in.event.Status = states.KindMulticastError, err, -int32(errnoOf(err))
				g.removeGroup()
				_, _ = in.file.LeaveMulticast(g.kid)
				break
			}
			g.attached = true
		}
	case states.KindMulticastError:
		g.removeGroup()
		_, _ = in.file.LeaveMulticast(g.kid) // it failed, and exists nevertheless
	default:
	}
	in.up.Event(id.h, &in.event)
}
