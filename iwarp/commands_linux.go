package iwarp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Do executes cmd.
func (id *driverID) Do(cmd cmid.Command) error {
	switch c := cmd.(type) {
	case *cmid.BindAddr:
		return id.bindAddr(c.Addr)
	case *cmid.ResolveAddr:
		return id.resolveAddr(c.Src, c.Dst)
	case *cmid.ResolveRoute:
		if !id.device || id.peer.IsZero() {
			return unix.EINVAL
		}
		id.queueEvent(cmid.DriverEvent{Kind: states.KindRouteResolved})
		return nil
	case *cmid.Listen:
		return id.listen(c.Backlog)
	case *cmid.Connect:
		return id.connect(c.PrivateData, c.Param)
	case *cmid.Accept:
		return id.accept(c.PrivateData, c.Param)
	case *cmid.Reject:
		return id.reject(c.PrivateData)
	case *cmid.Disconnect:
		return id.disconnect()
	case *cmid.DestroyID:
		id.destroy()
		return nil
	case *cmid.SetOption:
		return id.setOption(c.Option, c.Value)
	case *cmid.Notify:
		return nil // iw_cm accepts it and does nothing
	}
	return fmt.Errorf("iwarp has no %v: %w", cmd.Op(), unix.EOPNOTSUPP)
}

// CreateQP makes the queue pair of an identifier that has a device and no queue pair.
func (id *driverID) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	in := id.in
	switch {
	case !id.device:
		return nil, fmt.Errorf("iwarp: no device: resolve or bind a specific address first: %w", unix.EINVAL)
	case id.conn != nil && id.conn.qp != nil:
		return nil, fmt.Errorf("iwarp: there is a queue pair already: %w", unix.EINVAL)
	case id.lis != nil:
		return nil, fmt.Errorf("iwarp: a listener has no queue pair: %w", unix.EINVAL)
	}
	c := id.conn
	if c == nil {
		c = newConn(in)
		c.id = id
	}
	if c.in != in { // it had stayed with a queue pair on another loop
		c.leaveLoop()
		if err := c.joinLoop(in); err != nil {
			return nil, err
		}
	}
	qp, err := newQP(in.dev, c, attr)
	if err != nil {
		return nil, err
	}
	id.conn = c
	return qp, nil
}

// accept implements rdma_accept(3). On failure the peer is rejected. The kernel does that, and the
// state machine expects it.
func (id *driverID) accept(private []byte, p *cmid.ConnParam) error {
	if !id.child || id.answered {
		return unix.EINVAL
	}
	id.answered = true
	c := id.conn
	now := c.in.loop.Now()
	err := c.acceptSetup(now, private, p)
	if err != nil {
		_ = c.core.Reject(now, nil) // ECONNRESET: the peer is gone
	}
	c.applyCoreState(now)
	return err
}

func (c *conn) acceptSetup(now time.Time, private []byte, p *cmid.ConnParam) error {
	if c.qp == nil {
		return fmt.Errorf("iwarp: accept needs a queue pair: %w", unix.EINVAL)
	}
	ird, ord, err := depthsOf(p, c.asked.param())
	if err != nil {
		return err
	}
	return c.core.Accept(now, private, ird, ord)
}

// reject implements rdma_reject(3). The reason does not travel on iWARP.
func (id *driverID) reject(private []byte) error {
	if !id.child || id.answered {
		return unix.EINVAL
	}
	now := id.conn.in.loop.Now()
	if err := id.conn.core.Reject(now, private); err != nil {
		return err
	}
	id.answered = true
	id.conn.applyCoreState(now)
	return nil
}

// disconnect does rdma_disconnect(3). Disconnected is reported at the peer's FIN, so that all that
// it sent before is received.
func (id *driverID) disconnect() error {
	c := id.conn
	switch {
	case c == nil || !c.established:
		return unix.EINVAL
	case c.over:
		return nil
	}
	now := c.in.loop.Now()
	c.writeOutput(now) // work requests that were posted before
	c.core.Disconnect(now)
	if c.waits {
		c.core.Keep() // drops the message, which nobody will receive
	}
	c.applyCoreState(now)
	return nil
}

func (id *driverID) setOption(o cmid.Option, v int) error {
	if err := o.Check(v); err != nil {
		return err
	}
	switch o {
	case cmid.OptionTOS:
		id.tos, id.hasTOS = uint8(v), true
		for _, fd := range id.socketFDs() {
			if err := id.in.setTOS(fd, id.tos); err != nil {
				return fmt.Errorf("IP_TOS: %w", err)
			}
		}
	case cmid.OptionReuseAddr:
		id.reuse = v == 1
		if id.binding != nil {
			id.in.drv.ports.setReuse(id.binding, id.reuse)
		}
		if id.reuse && id.fd >= 0 {
			return id.in.shareAddr(id.fd)
		}
	case cmid.OptionAFOnly:
		return id.setAFOnly(v == 1)
	case cmid.OptionAckTimeout: // TCP has its own
	}
	return nil
}

// socketFDs returns the identifier's present fds.
func (id *driverID) socketFDs() []int {
	var fds []int
	if id.fd >= 0 {
		fds = append(fds, id.fd)
	}
	if id.lis != nil {
		fds = append(fds, id.lis.fd)
	}
	if id.conn != nil && id.conn.fd >= 0 {
		fds = append(fds, id.conn.fd)
	}
	return fds
}

// setAFOnly changes whether an IPv6 socket accepts IPv4, too. This cannot be changed after a socket
// is bound, so another socket replaces it: with SO_REUSEADDR both have the port for a moment.
func (id *driverID) setAFOnly(only bool) error {
	if id.fd < 0 || id.local.Family() != cmid.FamilyIPv6 || only == id.afonly {
		id.afonly = only
		return nil
	}
	if err := id.in.shareAddr(id.fd); err != nil {
		return err
	}
	before := id.afonly
	id.afonly = only
	fd, _, err := id.newSocket(id.binding.addr)
	if err != nil {
		id.afonly = before
		return err
	}
	id.in.closeFD(id.fd)
	id.fd = fd
	id.in.drv.ports.setAFOnly(id.binding, only)
	return nil
}

// destroy implements rdma_destroy_id(3): all of the identifier is closed, except a socket that must
// still send or receive a FIN.
func (id *driverID) destroy() {
	if id.dead {
		return
	}
	id.dead = true
	delete(id.in.ids, id.h)
	if id.lis != nil {
		id.lis.close()
		id.lis = nil
	}
	if id.fd >= 0 {
		id.in.closeFD(id.fd)
		id.fd = -1
	}
	if c := id.conn; c != nil {
		id.conn = nil
		c.identDestroyed(c.in.loop.Now())
	}
	id.in.drv.ports.releasePort(id.binding)
	id.binding = nil
}
