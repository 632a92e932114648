package cmidtest

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Do executes a command that cmid's state machine has allowed.
func (id *driverID) Do(cmd cmid.Command) error {
	if _, ok := cmd.(*cmid.DestroyID); ok {
		id.destroy()
		return nil
	}
	if id.state == states.Removed {
		return unix.ENXIO
	}
	switch c := cmd.(type) {
	case *cmid.BindAddr:
		return id.enter(states.Bound, id.bind(c.Addr))
	case *cmid.ResolveAddr:
		return id.resolveAddr(c)
	case *cmid.ResolveRoute:
		return id.resolveRoute(c)
	case *cmid.Listen:
		return id.enter(states.Listening, id.listen(c.Backlog))
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
		return id.setOption(c)
	case *cmid.Notify:
		return id.notify(c)
	case *cmid.JoinMulticast:
		return id.groups.join(c)
	case *cmid.LeaveMulticast:
		return id.groups.leave(c.Addr)
	case *cmid.SetIBPath:
		if !id.in.f.embedded {
			return id.setIBPath(c.Paths)
		}
	case *cmid.WriteCMEvent:
		if !id.in.f.embedded {
			id.runLater(func() { id.in.deliverEvent(id, cmid.DriverEvent{Kind: states.KindUser, Arg: c.Arg}) })
			return nil
		}
	case *cmid.ResolveIBService: // only native InfiniBand has a subnet administrator
	default:
		return unix.EINVAL
	}
	return cmid.ErrNotSupported
}

func (id *driverID) setOption(c *cmid.SetOption) error {
	if err := c.Option.Check(c.Value); err != nil {
		return err
	}
	switch c.Option {
	case cmid.OptionReuseAddr:
		id.reuse = c.Value != 0
	case cmid.OptionAFOnly:
		id.afOnly, id.afOnlySet = c.Value != 0, true
	case cmid.OptionTOS:
		id.network.class, id.network.chosen = uint8(c.Value), true
	case cmid.OptionAckTimeout:
		id.network.ack, id.network.waits = uint8(c.Value), true
	}
	if id.port != nil {
		id.in.f.mu.Lock()
		id.port.reuse, id.port.afOnly = id.reuse, id.afOnlyFor(id.port.ip)
		id.in.f.mu.Unlock()
	}
	return nil
}

// notify does rdma_notify(3): on InfiniBand a receive before the RTU shows that the connection is
// established.
func (id *driverID) notify(c *cmid.Notify) error {
	if !id.in.f.iwarp && !c.PathMigrated {
		id.runLater(id.becomeEstablished)
	}
	return nil
}

// Info returns the addresses and the device.
func (a *addresses) Info() cmid.Info {
	info := cmid.Info{Local: a.local, Peer: a.peer}
	if a.dev != nil {
		info.Device, info.Port = a.dev.name, 1
	}
	return info
}

// Device is the device the identifier is attached to.
func (id *driverID) Device() verbs.Device {
	switch {
	case id.dev == nil:
		return nil
	case id.qp != nil:
		return id.qp.view
	}
	return id.in.viewOf(id.dev)
}
