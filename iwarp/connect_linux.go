package iwarp

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/states"
)

// connect implements rdma_connect(3), without blocking.
func (id *driverID) connect(private []byte, p *cmid.ConnParam) error {
	c := id.conn
	switch {
	case c == nil || c.qp == nil:
		return fmt.Errorf("iwarp: connect needs a queue pair: %w", unix.EINVAL)
	case c.phase != phIdle || id.child || id.peer.IsZero():
		return unix.EINVAL
	case c.in.conns >= c.in.cfg.MaxConns:
		return fmt.Errorf("iwarp: the device has its %d connections (MaxConns): %w", c.in.conns, unix.ENOMEM)
	}
	ird, ord, err := depthsOf(p, cmid.ConnParam{ResponderResources: maxRDAtom, InitiatorDepth: maxRDAtom})
	if err != nil {
		return err
	}
	cfg := core.Config{
		Initiator: true, PrivateData: bytes.Clone(private), IRD: ird, ORD: ord,
		PeerToPeer: !id.in.cfg.ClientServer, CRC: id.in.cfg.CRC, Pool: &c.in.pool, SetupTimeout: id.in.cfg.ReplyTimeout,
		MessageTimeout: id.in.cfg.MessageTimeout,
	}
	if err := c.renewCore(cfg, &c.core); err != nil {
		return err
	}
	if id.fd < 0 {
		if id.binding == nil {
			return fmt.Errorf("iwarp: the source port was lost in an attempt that failed, resolve the address again: %w", unix.EADDRNOTAVAIL)
		}
		if id.fd, _, err = id.newSocket(id.binding.addr); err != nil {
			return err
		}
	}
	return c.dialPeer()
}

// depthsOf returns IRD and ORD of p. Where p is nil or a depth is 255, def's apply. It fails with
// EINVAL above the device's maximum.
func depthsOf(p *cmid.ConnParam, def cmid.ConnParam) (ird, ord uint16, err error) {
	q := def
	if p != nil {
		q = *p
		if q.ResponderResources == 255 {
			q.ResponderResources = def.ResponderResources
		}
		if q.InitiatorDepth == 255 {
			q.InitiatorDepth = def.InitiatorDepth
		}
	}
	if q.ResponderResources > maxRDAtom || q.InitiatorDepth > maxRDAtom {
		return 0, 0, fmt.Errorf("iwarp: ResponderResources %d and InitiatorDepth %d, the limit is %d: %w", q.ResponderResources, q.InitiatorDepth, maxRDAtom, unix.EINVAL)
	}
	return uint16(q.ResponderResources), uint16(q.InitiatorDepth), nil
}

// renewCore replaces the core by a new one for an attempt to connect, with the receives that were
// posted to the previous one.
func (c *conn) renewCore(cfg core.Config, posted *core.Conn) error {
	cfg.Queues, cfg.Withheld = c.qp.coreQueues(), c.qp.withheld
	var fresh core.Conn
	if err := fresh.Init(cfg, c); err != nil {
		return err
	}
	fresh.TakeReceives(posted)
	c.core, c.dialing, c.initiator = fresh, &dialing{config: cfg}, true
	return nil
}

// dialPeer starts TCP's handshake on the identifier's socket, and MPA if the handshake is already
// complete. An immediate refusal is reported like a later one. An error is returned only if another
// attempt could succeed, and then nothing has changed.
func (c *conn) dialPeer() error {
	id := c.id
	if id.local == id.peer { // TCP would connect the socket to itself
		return c.refuseDial(unix.ECONNREFUSED)
	}
	sa, _, err := id.in.toSockaddr(id.peer)
	if err != nil {
		return err
	}
	if !id.auto && !id.reuse { // otherwise it shares already
		if err = id.in.shareAddr(id.fd); err != nil {
			return err
		}
	}
	err = c.in.sys.Connect(id.fd, sa)
	for range portTries {
		if err != unix.EADDRNOTAVAIL || !id.auto {
			break
		}
		// a connection with these addresses and ports is still in TIME_WAIT
		if err := id.redrawPort(); err != nil {
			return err
		}
		err = c.in.sys.Connect(id.fd, sa)
	}
	switch err {
	case nil, unix.EINPROGRESS:
	case unix.ECONNREFUSED, unix.ECONNRESET, unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.ENETUNREACH:
		return c.refuseDial(err)
	default:
		return fmt.Errorf("iwarp: connect %v: %w", id.peer, err)
	}
	fd, now := id.fd, id.in.loop.Now()
	id.fd = -1
	// on this host the handshake is complete by now, whatever connect(2) returns
	done := err == nil || c.in.tcpConnected(fd)
	interest := eventloop.Writable
	if done {
		interest = eventloop.Readable
	}
	if err := c.attachFD(fd, interest); err != nil {
		c.in.closeFD(fd) // the handshake is under way
		return err
	}
	c.unguarded = true
	if done {
		c.beginMPA(now)
		c.applyCoreState(now)
		return nil
	}
	c.phase = phConnecting
	c.timer.arm(c, now, now.Add(c.in.cfg.ReplyTimeout))
	return nil
}

// refuseDial reports an immediate refusal.
func (c *conn) refuseDial(err error) error {
	c.in.closeFD(c.id.fd)
	c.id.fd = -1
	c.connectFailed(c.in.loop.Now(), fmt.Errorf("iwarp: connect %v: %w", c.id.peer, err))
	return nil
}

// redrawPort replaces an automatically chosen port.
func (id *driverID) redrawPort() error {
	id.in.closeFD(id.fd)
	id.fd = -1
	id.in.drv.ports.releasePort(id.binding)
	id.binding = nil
	return id.bindFor(id.peer, id.local.Addr())
}

// tcpConnected reports whether fd's handshake is complete.
func (in *instance) tcpConnected(fd int) bool {
	_, err := in.sys.Peer(fd)
	return err == nil
}

// dialCompleted checks the socket after its handshake.
func (c *conn) dialCompleted(now time.Time) {
	err := c.in.sockError(c.fd)
	switch {
	case err != nil:
		c.connectFailed(now, fmt.Errorf("iwarp: connect %v: %w", c.id.peer, err))
	case c.in.tcpConnected(c.fd):
		c.beginMPA(now)
	}
}

// beginMPA starts MPA on a connected socket. The Request is sent immediately, because until it
// arrives the connection occupies a set-up slot at the peer.
func (c *conn) beginMPA(now time.Time) {
	if c.phase == phConnecting {
		c.timer.stop()
		_ = c.reg.Modify(eventloop.Readable) // the fd is open, so this cannot fail
	}
	c.phase = phRunning
	if c.id != nil && c.id.binding.addr.IsWildcard() { // the kernel has just chosen the source
		if sa, err := c.in.sys.Local(c.fd); err == nil {
			c.id.local = c.in.addrOf(sa)
		}
	}
	c.core.BeginSetup(now)
	c.writeOutput(now)
}

// connectFailed ends an attempt that failed before MPA.
func (c *conn) connectFailed(now time.Time, err error) {
	c.silent = true
	c.core.Abort(now)
	c.close()
	c.connectEvent(nil, err)
}

// mustRetry reports whether another attempt to connect is due.
func (d *dialing) mustRetry() bool { return d != nil && d.again != nil }

// retryRevision1 connects again, with MPA revision 1, after the peer has closed the connection upon
// the revision 2 Request, as some adapters do. The first connection is reset; the peer loses
// nothing by that, because it has already closed. An orderly close would last until the peer has
// acknowledged it, and until then TCP cannot have a second connection between the same ports.
func (c *conn) retryRevision1(now time.Time) {
	posted, cfg, first := c.dialing.again, c.dialing.config, c.dialing.first
	c.dialing.again = nil
	// of an open socket, so this cannot fail
	_ = c.in.sys.SetLinger(c.fd, &unix.Linger{Onoff: 1})
	c.captureClose(true)
	c.closeSocket()
	c.phase, c.came, c.went = phIdle, 0, 0
	cfg.Revision = 1
	err := c.renewCore(cfg, posted) // cannot fail: the same arguments were valid the first time
	c.dialing.first = first
	if err == nil {
		c.id.fd, _, err = c.id.newSocket(cmid.AddrFrom(c.id.binding.addr.Addr(), c.id.local.Port()))
	}
	if err == nil {
		err = c.dialPeer()
	}
	if err != nil {
		c.connectFailed(now, err)
	}
}

// Rejected is called by the core: a connecting side's set-up failed.
func (c *conn) Rejected(private []byte, err error) {
	if c.id == nil {
		return
	}
	if d := c.dialing; errors.Is(err, core.ErrNoReply) && d != nil && d.config.Revision != 1 {
		d.first, d.again = err, new(core.Conn)
		d.again.TakeReceives(&c.core)
		return
	}
	c.connectEvent(private, err)
}

// connectEvent reports why a connection failed.
func (c *conn) connectEvent(private []byte, err error) {
	d := c.dialing
	c.dialing = nil
	kind, errno := states.KindConnectError, errnoOf(err)
	switch errno {
	case unix.ECONNRESET, unix.ECONNREFUSED:
		kind = states.KindRejected
	case unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN, unix.ENETDOWN:
		kind = states.KindUnreachable
	}
	if d != nil && d.first != nil && err != nil {
		err = fmt.Errorf("%w (with MPA revision 1; with revision 2 before: %v)", err, d.first)
	}
	if c.id != nil {
		c.id.queueEvent(cmid.DriverEvent{Kind: kind, Status: -int32(errno), Err: err, PrivateData: private})
	}
}

// paramDepth returns an IRD or ORD as in struct rdma_conn_param; one that the peer left open
// becomes the device's maximum.
func paramDepth(n uint16) uint8 { return uint8(min(n, maxRDAtom)) }
