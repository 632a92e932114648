package ucm

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
)

// Do executes cmd.
func (id *driverID) Do(cmd cmid.Command) error {
	in := id.in
	if _, ok := cmd.(*cmid.DestroyID); ok {
		return id.destroy()
	}
	if in.lost != nil {
		return in.lost.err
	}
	return in.checkError(id.doCommand(cmd))
}

func (id *driverID) doCommand(cmd cmid.Command) error {
	f := id.in.file
	switch c := cmd.(type) {
	case *cmid.BindAddr:
		return id.bindAddr(c.Addr)
	case *cmid.ResolveAddr:
		return id.resolveAddr(c)
	case *cmid.ResolveRoute:
		return f.ResolveRoute(id.kid, timeoutMillis(c.Timeout))
	case *cmid.SetIBPath:
		return f.SetOption(id.kid, uabi.OptionLevelIB, uabi.OptionIBPath, c.Paths)
	case *cmid.Listen:
		return id.listen(c.Backlog)
	case *cmid.Connect:
		return id.connect(c)
	case *cmid.Accept:
		return id.accept(c)
	case *cmid.Reject:
		return id.reject(c)
	case *cmid.Establish:
		return id.establish()
	case *cmid.Disconnect:
		return id.disconnect()
	case *cmid.SetOption:
		return id.setOption(c.Option, c.Value)
	case *cmid.Notify:
		event := uint32(uabi.NotifyEventCommEst)
		if c.PathMigrated {
			event = uabi.NotifyEventPathMig
		}
		return f.Notify(id.kid, event)
	case *cmid.JoinMulticast:
		return id.joinMulticast(c)
	case *cmid.LeaveMulticast:
		return id.leaveMulticast(c.Addr)
	case *cmid.ResolveIBService:
		return id.resolveService(c)
	case *cmid.WriteCMEvent:
		in := uabi.WriteCMEvent{ID: id.kid, Event: uabi.EventUser}
		*in.Arg() = c.Arg
		return f.WriteCMEvent(&in)
	}
	return fmt.Errorf("rdma_cm has no %v: %w", cmd.Op(), unix.EOPNOTSUPP)
}

// resolveService implements rdma_resolve_addrinfo(3) with RAI_SA.
func (id *driverID) resolveService(c *cmid.ResolveIBService) error {
	cmd := uabi.ResolveIBService{ID: id.kid}
	if len(c.Name) >= len(cmd.Ibs.ServiceName) {
		return unix.EINVAL
	}
	const byID, byName = 1, 2 // RDMA_USER_CM_IB_SERVICE_FLAG_ID, _NAME
	if c.Name != "" {
		cmd.Ibs.Flags = byName
		copy(cmd.Ibs.ServiceName[:], c.Name)
	} else {
		cmd.Ibs.Flags = byID
		cmd.Ibs.ServiceID = c.ServiceID
	}
	return id.in.file.ResolveIBService(&cmd)
}
