package iwarp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp/core"
	"github.com/rdmactor/rdmactor/states"
)

const (
	acceptsPerTurn = 64
	// acceptPause is how long a listener rests when the process has no file descriptors left: it would be readable all the time.
	acceptPause = 100 * time.Millisecond
)

// listener is a listening socket in the loop.
type listener struct {
	id     *ident
	fd     int
	reg    *eventloop.Registration
	pause  *eventloop.Timer // nil until the first pause
	paused bool
}

// listen is rdma_listen(3). The backlog is TCP's: connections that the loop has not yet accepted.
func (id *ident) listen(backlog int) error {
	in := id.in
	if id.lis != nil || id.conn != nil || id.child {
		return unix.EINVAL
	}
	if id.hold == nil {
		if err := id.bind(cmid.MustAddr("0.0.0.0:0")); err != nil {
			return err
		}
	}
	if backlog <= 0 || backlog > maxBacklog {
		backlog = maxBacklog
	}
	if err := ports.listens(id.hold); err != nil {
		return err
	}
	if err := shareAddr(id.fd); err != nil { // for whoever listens here after us; while this socket listens it shares with nobody
		return err
	}
	l := &listener{id: id, fd: id.fd}
	if err := unix.Listen(l.fd, backlog); err != nil {
		return fmt.Errorf("iwarp: listen %v: %w", id.local, err)
	}
	reg, err := in.loop.Add(l.fd, eventloop.Readable, l)
	if err != nil {
		return err // the socket listens already; nobody is told, and the identifier can only be destroyed or listen again
	}
	l.reg, id.lis, id.fd = reg, l, -1
	return nil
}

// Ready accepts what is there.
func (l *listener) Ready(eventloop.Events) {
	in := l.id.in
	for range acceptsPerTurn {
		fd, sa, err := unix.Accept4(l.fd, sockFlags)
		switch err {
		case nil:
			in.incoming(l, fd, sa)
		case unix.EAGAIN:
			return
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			l.rest()
			return
		case unix.EINTR:
		default: // the connection's own trouble (ECONNABORTED, and what accept(2) passes on from the network)
		}
		if l.fd < 0 {
			return
		}
	}
}

// rest stops accepting for a while. The connections wait in the kernel's queue.
func (l *listener) rest() {
	if l.paused || l.reg.Modify(0) != nil {
		return
	}
	l.paused = true
	if l.pause == nil {
		l.pause = l.id.in.loop.NewTimer(l.resume)
	}
	l.pause.Reset(acceptPause)
}

func (l *listener) resume() {
	l.paused = false
	if l.reg.Modify(eventloop.Readable) == nil {
		l.Ready(eventloop.Readable)
	}
}

// close ends the listener and the set-ups that have not brought their Request. Children that were told live on.
func (l *listener) close() {
	if l.pause != nil {
		l.pause.Stop()
	}
	_ = l.reg.Remove() // the fd is open, so this cannot fail
	closeFD(l.fd)
	l.fd = -1
	for c := range l.id.in.attempts {
		if c.lis == l {
			c.close()
		}
	}
}

// incoming is a new TCP connection: it gets RequestTimeout to say what it wants.
func (in *instance) incoming(l *listener, fd int, peer unix.Sockaddr) {
	if in.setups >= in.cfg.MaxSetups || in.conns >= in.cfg.MaxConns {
		closeFD(fd)
		return
	}
	local, err := unix.Getsockname(fd)
	if err != nil { // reset already
		closeFD(fd)
		return
	}
	c := newConn(in)
	c.lis, c.local, c.peer = l, unmapped(addrOf(local)), unmapped(addrOf(peer))
	err = c.core.Init(core.Config{
		CRC: in.cfg.CRC, Pool: &in.pool, SetupTimeout: in.cfg.RequestTimeout, MessageTimeout: in.cfg.MessageTimeout,
	}, c)
	if err == nil {
		err = c.attach(fd, eventloop.Readable)
	}
	if err != nil {
		closeFD(fd)
		return
	}
	in.setups++
	in.attempts[c] = struct{}{}
	now := in.loop.Now()
	c.core.Start(now)
	c.settle(now)
}

// requestDone ends an inbound connection's set-up phase, whether its Request came or not.
func (c *conn) requestDone() {
	if _, ok := c.in.attempts[c]; ok {
		delete(c.in.attempts, c)
		c.in.setups--
	}
}

// Request makes the identifier that a ConnectRequest brings (core.Upcalls).
func (c *conn) Request(r core.Request) {
	in := c.in
	c.requestDone()
	child := &ident{
		in: in, h: in.up.NewHandle(), fd: -1, local: c.local, peer: c.peer, device: true, child: true, conn: c,
	}
	in.ids[child.h] = child
	c.id = child
	c.asked = cmid.ConnParam{ResponderResources: depth(r.ORD), InitiatorDepth: depth(r.IRD)}
	in.tell(event{
		id: c.lis.id, child: child, kind: states.KindConnectRequest, private: r.PrivateData, param: c.asked,
	})
	c.lis = nil
}

// depth is an IRD or ORD as struct rdma_conn_param holds it; what the peer left open becomes our most.
func depth(n uint16) uint8 { return uint8(min(n, maxRDAtom)) }
