package iwarp

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp/core"
	"github.com/rdmactor/rdmactor/states"
)

const (
	acceptsPerTurn = 64
	// acceptPause is how long a listener rests when the process has no file descriptors left: it
	// would be readable all the time.
	acceptPause = 100 * time.Millisecond
	// graceShare is the part of RequestTimeout that every set-up gets for its Request, however
	// many connections wait for its place: half a second of 5. An initiator sends its Request
	// right behind TCP's handshake, so the way's length does not matter; what this is for is a
	// Request that was lost once, or an initiator that is late.
	graceShare = 10
)

// listen is rdma_listen(3). The backlog is TCP's: connections that the loop has not yet accepted,
// and one more.
func (id *ident) listen(backlog int) error {
	in := id.in
	if id.lis != nil || id.child || id.conn != nil && id.conn.phase != phIdle {
		return unix.EINVAL
	}
	if id.binding == nil {
		if err := id.bind(cmid.MustAddr("0.0.0.0:0")); err != nil {
			return err
		}
	}
	if backlog <= 0 || backlog > maxBacklog {
		backlog = maxBacklog
	}
	if err := ports.listens(id.binding); err != nil {
		return err
	}
	// for whoever listens here after us; while this socket listens it shares with nobody
	if err := shareAddr(id.fd); err != nil {
		return err
	}
	l := &listener{id: id, fd: id.fd}
	if err := unix.Listen(l.fd, backlog); err != nil {
		return fmt.Errorf("iwarp: listen %v: %w", id.local, err)
	}
	reg, err := in.loop.Add(l.fd, eventloop.Readable, l)
	if err != nil {
		// the socket listens already; nobody is notified, and the identifier can only be destroyed
		// or listen again
		return err
	}
	l.reg, id.lis, id.fd = reg, l, -1
	return nil
}

// Ready is called by the loop.
func (l *listener) Ready(ev eventloop.Events) {
	l.accept(ev&eventloop.Hangup != 0)
	l.id.in.drain()
}

// accept takes what is there and has room. A listening socket hangs up only when it does not listen
// any more, and rest would not keep that event from the loop.
func (l *listener) accept(hungUp bool) {
	in := l.id.in
	for i := range acceptsPerTurn {
		if wait := in.fullFor(); wait > 0 && !hungUp {
			if i == 0 && l.rest(wait) { // else nobody may be waiting; the next turn knows
				in.crowded = append(in.crowded, l)
			}
			return
		}
		fd, sa, err := in.sys.accept(l.fd)
		switch err {
		case nil:
			in.incoming(l, fd, sa)
		case unix.EAGAIN:
			return
		case unix.EMFILE, unix.ENFILE:
			if i > 0 {
				// nobody may be waiting: accept(2) looks for a descriptor first. The next turn
				// knows
				return
			}
			if wait := in.makeRoom(); wait > 0 {
				l.rest(min(wait, acceptPause))
				return
			}
		case unix.EINVAL, unix.EBADF, unix.ENOTSOCK:
			l.fail(err)
			return
		case unix.EINTR, unix.ECONNABORTED, unix.ECONNRESET, unix.ETIMEDOUT, unix.EPROTO, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.EPERM,
			// the connection's own trouble
			unix.ENETDOWN, unix.ENETUNREACH, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENONET:
		default: // no memory, or what nobody knows: it may be the same in the next turn
			l.rest(acceptPause)
			return
		}
		if l.fd < 0 {
			return
		}
	}
}

// fail ends a listener whose socket does not listen any more: somebody has shut it down (`ss -K`),
// or closed it, and its number may be that of another file by now.
func (l *listener) fail(err error) {
	text := "the system has shut the listening socket down"
	if err != unix.EINVAL {
		text = "the listening socket has been closed, by somebody else in this process"
		l.lost = true
	}
	l.close()
	l.id.lis = nil
	l.id.report(cmid.DriverEvent{
		Kind: states.KindListenFailed, Status: -int32(errnoOf(err)), Err: fmt.Errorf("iwarp: accept: %s: %w", text, err),
	})
}

// rest stops accepting for a while, if it can. The connections wait in the kernel's queue.
func (l *listener) rest(d time.Duration) bool {
	if l.reg.Modify(0) != nil {
		return false
	}
	l.paused = true
	if l.pause == nil {
		l.pause = l.id.in.loop.NewTimer(l.resume)
	}
	l.pause.Reset(d)
	return true
}

// resume accepts again: when the pause is over, or there is room.
func (l *listener) resume() {
	in := l.id.in
	in.crowded = slices.DeleteFunc(in.crowded, func(h *listener) bool { return h == l })
	l.paused = false
	l.pause.Stop()
	_ = l.reg.Modify(eventloop.Readable) // the fd is open, so this cannot fail
}

// close ends the listener and the set-ups that have not brought their Request. Children whose
// request was delivered live on.
func (l *listener) close() {
	if l.paused {
		l.resume()
	}
	_ = l.reg.Remove() // the fd is open, so this cannot fail; if it is not ours it says so
	if !l.lost {
		closeFD(l.fd)
	}
	l.fd = -1
	for c := l.id.in.setups.oldest; c != nil; {
		next := c.newer
		if c.lis == l {
			c.close()
		}
		c = next
	}
}

// fullFor is how long there will be no room for another set-up; zero when there is, or when the
// oldest has had its time and makes room. Connections that wait for room are in the kernel's queue
// meanwhile, where they cost this process nothing. A flood of silent peers then costs the others a
// wait, and not their connections.
func (in *instance) fullFor() time.Duration {
	now := in.loop.Now()
	for in.setups.n >= in.cfg.MaxSetups {
		c := in.setups.oldest
		if wait := c.grace(now); wait > 0 {
			return wait
		}
		if !c.heard(now) {
			return 0 // incoming lets go of it, if there is a connection to come
		}
	}
	return 0
}

// makeRoom closes the oldest set-up for the sake of its file descriptor, when it has had its time;
// else it says how long there will be none to close. Descriptors are the process's: another part of
// it may give one back, or take this one, at any time.
func (in *instance) makeRoom() time.Duration {
	now := in.loop.Now()
	for in.setups.oldest != nil {
		c := in.setups.oldest
		if wait := c.grace(now); wait > 0 {
			return wait
		}
		if !c.heard(now) {
			c.evict()
			return 0
		}
	}
	return acceptPause
}

// grace is for how long a set-up need not make room.
func (c *conn) grace(now time.Time) time.Duration {
	all := c.in.cfg.RequestTimeout
	return c.at.Sub(now) - (all - all/graceShare)
}

// heard reads once more from a connection whose Request nobody may have looked for, and says
// whether its set-up is done.
func (c *conn) heard(now time.Time) bool {
	c.input()
	c.settle(now)
	return c.in.setups.oldest != c
}

// incoming takes a new TCP connection. It gets RequestTimeout for its Request, which mostly has
// come by now.
func (in *instance) incoming(l *listener, fd int, peer unix.Sockaddr) {
	if in.conns >= in.cfg.MaxConns {
		closeFD(fd)
		return
	}
	c := newConn(in)
	c.lis, c.local, c.peer = l, l.id.local, unmapped(addrOf(peer))
	if l.id.local.IsWildcard() {
		local, err := in.sys.local(fd)
		if err != nil { // reset already
			closeFD(fd)
			return
		}
		c.local = unmapped(addrOf(local))
	}
	err := c.core.Init(core.Config{
		CRC: in.cfg.CRC, Pool: &in.pool, SetupTimeout: in.cfg.RequestTimeout, MessageTimeout: in.cfg.MessageTimeout,
	}, c)
	if err == nil {
		err = c.attach(fd, eventloop.Readable)
	}
	if err != nil {
		closeFD(fd)
		return
	}
	in.setups.push(c, in.cfg.MaxSetups)
	now := in.loop.Now()
	c.core.Start(now)
	c.input()
	c.settle(now)
}

// requestDone ends an inbound connection's set-up phase: its Request came, or its socket goes. One
// that was refused is still there until its peer has read why.
func (c *conn) requestDone() {
	if c.lis == nil || !c.in.setups.remove(c) {
		return
	}
	for len(c.in.crowded) > 0 {
		c.in.crowded[0].resume()
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
	c.asked = cmid.ConnParam{ResponderResources: maxRDAtom, InitiatorDepth: maxRDAtom}
	if r.Enhanced {
		c.asked = cmid.ConnParam{ResponderResources: depth(r.ORD), InitiatorDepth: depth(r.IRD)}
	}
	c.lis.id.report(cmid.DriverEvent{
		Kind: states.KindConnectRequest, Child: child, PrivateData: r.PrivateData, Param: c.asked,
	})
	c.lis = nil
}

var _ cmid.StrangerCounter = (*instance)(nil)

// Strangers counts the connections that ended without an MPA Request. Any goroutine.
func (in *instance) Strangers() uint64 { return in.strangers.Load() }

// stranger notes that c has ended without a Request. What err quotes of the peer is short and
// escaped.
func (c *conn) stranger(err error) {
	in := c.in
	in.strangers.Add(1)
	n, ok := in.drv.strangers.log(in.loop.Now())
	if !ok {
		return
	}
	// Posted: in the middle of a connection's end a logger that panics would leave it half done.
	_ = in.loop.Post(func() {
		in.loop.Logger().Info("iwarp: a connection without an MPA Request",
			"device", in.cfg.Device, "local", c.local, "peer", c.peer, "err", err, "unlogged before", n)
	})
}

// evict closes c, to make room for another one.
func (c *conn) evict() {
	c.close()
	if c.lis != nil && !c.over { // else it was counted when it was refused
		c.stranger(&core.Error{Op: "request", Errno: unix.EBUSY, Text: "no complete Request yet, and others need the room"})
	}
}
