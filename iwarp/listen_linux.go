package iwarp

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/states"
)

const (
	acceptsPerTurn = 64
	// acceptPause is how long a listener pauses when the process has no file descriptors left.
	// Without a pause it would be readable all the time.
	acceptPause = 100 * time.Millisecond
	// graceShare is the fraction of RequestTimeout for which a set-up is not closed, however many
	// connections wait for its place: one tenth, half a second of 5. An initiator sends its Request
	// right after TCP's handshake, so the round-trip time does not matter. The grace is for a
	// Request that was lost once, or an initiator that is late.
	graceShare = 10
)

// listen does rdma_listen(3). The backlog is TCP's: the kernel queues up to backlog+1 connections
// that the loop has not yet accepted.
func (id *driverID) listen(backlog int) error {
	in := id.in
	if id.lis != nil || id.child || id.conn != nil && id.conn.phase != phIdle {
		return unix.EINVAL
	}
	if id.binding == nil {
		if err := id.bindLocal(cmid.MustAddr("0.0.0.0:0")); err != nil {
			return err
		}
	}
	if backlog <= 0 || backlog > maxBacklog {
		backlog = maxBacklog
	}
	if err := in.drv.ports.checkListen(id.binding); err != nil {
		return err
	}
	// so that another socket can listen here after this one; while this one listens no other socket
	// can
	if err := in.shareAddr(id.fd); err != nil {
		return err
	}
	if err := in.setLossOptions(id.fd); err != nil {
		return err
	}
	l := &listener{id: id, fd: id.fd}
	if err := in.sys.Listen(l.fd, backlog); err != nil {
		return fmt.Errorf("iwarp: listen %v: %w", id.local, err)
	}
	reg, err := in.loop.Add(l.fd, eventloop.Readable, l)
	if err != nil {
		// the socket listens already, but connections are not reported; the identifier can only be
		// destroyed or listen again
		return err
	}
	l.reg, id.lis, id.fd = reg, l, -1
	return nil
}

// Ready is called by the loop.
func (l *listener) Ready(ev eventloop.Events) {
	l.acceptConns(ev&eventloop.Hangup != 0)
	l.id.in.deliverReports()
}

// acceptConns accepts the waiting connections, as long as there is room. A listening socket hangs
// up only when it no longer listens. A pause would not hide that event from the loop, so it
// does not pause then.
func (l *listener) acceptConns(hungUp bool) {
	in := l.id.in
	for i := range acceptsPerTurn {
		if wait := in.fullFor(); wait > 0 && !hungUp {
			// otherwise perhaps no connection waits; the next turn will show
			if i == 0 && l.pauseFor(wait) {
				in.crowded = append(in.crowded, l)
			}
			return
		}
		fd, sa, err := in.sys.Accept(l.fd)
		switch err {
		case nil:
			in.startSetup(l, fd, sa)
		case unix.EAGAIN:
			return
		case unix.EMFILE, unix.ENFILE:
			if i > 0 {
				// perhaps no connection waits, because accept(2) looks for a descriptor first; the
				// next turn will show
				return
			}
			if wait := in.makeRoom(); wait > 0 {
				l.pauseStarved(err, min(wait, acceptPause))
				return
			}
		case unix.EINVAL, unix.EBADF, unix.ENOTSOCK:
			l.fail(err)
			return
		case unix.EINTR, unix.ECONNABORTED, unix.ECONNRESET, unix.ETIMEDOUT, unix.EPROTO, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.EPERM,
			// errors of the new connection, not of the listener
			unix.ENETDOWN, unix.ENETUNREACH, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENONET:
		default: // no memory, or an unknown error; it may recur in the next turn
			l.pauseStarved(err, acceptPause)
			return
		}
		if l.fd < 0 {
			return
		}
	}
}

// pauseStarved stops accepting for d, because the process has no file descriptors or no memory for
// a connection. Its peers see nothing but a time-out, so this side counts and logs it.
func (l *listener) pauseStarved(err error, d time.Duration) {
	l.pauseFor(d)
	l.id.starved++
	in, local := l.id.in, l.id.local
	n, ok := in.drv.starved.shouldLog(in.loop.Now())
	if !ok {
		return
	}
	_ = in.loop.Post(func() { // as in recordStranger
		in.loop.Logger().Warn("iwarp: a listener cannot accept, and its peers wait: see ulimit -n",
			"device", in.cfg.Device, "local", local, "err", err, "unlogged", n)
	})
}

// fail ends a listener whose socket no longer listens. Either it was shut down (`ss -K`), or other
// code has closed it; then its number may already belong to another file.
func (l *listener) fail(err error) {
	text := "the system has shut the listening socket down"
	if err != unix.EINVAL {
		text = "the listening socket has been closed, by somebody else in this process"
		l.lost = true
	}
	l.close()
	l.id.lis = nil
	l.id.queueEvent(cmid.DriverEvent{
		Kind: states.KindListenFailed, Status: -int32(errnoOf(err)), Err: fmt.Errorf("iwarp: accept: %s: %w", text, err),
	})
}

// pauseFor stops accepting for d. Connections wait in the kernel's queue. The result is false if it
// cannot stop.
func (l *listener) pauseFor(d time.Duration) bool {
	if l.reg.Modify(0) != nil {
		return false
	}
	l.paused = true
	if l.pause == nil {
		l.pause = l.id.in.loop.NewTimer(l.resumeAccepting)
	}
	l.pause.Reset(d)
	return true
}

// resumeAccepting accepts again, because the pause is over or because there is room.
func (l *listener) resumeAccepting() {
	in := l.id.in
	in.crowded = slices.DeleteFunc(in.crowded, func(h *listener) bool { return h == l })
	l.paused = false
	l.pause.Stop()
	_ = l.reg.Modify(eventloop.Readable) // the fd is open, so this cannot fail
}

// close ends the listener and the set-ups whose Request has not arrived. Children whose request was
// delivered continue.
func (l *listener) close() {
	if l.paused {
		l.resumeAccepting()
	}
	// the fd is open, so this cannot fail; if the fd belongs to other code the call reports that
	_ = l.reg.Remove()
	if !l.lost {
		l.id.in.closeFD(l.fd)
	}
	l.fd = -1
	for c := l.id.in.setups.oldest; c != nil; {
		next := c.newer
		if c.arriving.lis == l {
			c.close()
		}
		c = next
	}
}

// fullFor returns how long there will be no room for another set-up. It is zero if there is room,
// or if the grace of the oldest set-up is over, so that it can be closed. Connections that wait for
// room are in the kernel's queue, where they cost this process nothing. So a flood of silent peers
// makes other peers wait, but does not cost them their connections.
func (in *instance) fullFor() time.Duration {
	now := in.loop.Now()
	for in.setups.n >= in.cfg.MaxSetups {
		c := in.setups.oldest
		if wait := c.graceLeft(now); wait > 0 {
			return wait
		}
		if !c.readLateRequest(now) {
			return 0 // startSetup evicts it, if there is a new connection
		}
	}
	return 0
}

// makeRoom closes the oldest set-up to free its file descriptor, if its grace is over. Otherwise it
// returns how long no set-up can be closed. Descriptors belong to the whole process: another part
// of it may release one, or take the one released here, at any time.
func (in *instance) makeRoom() time.Duration {
	now := in.loop.Now()
	for in.setups.oldest != nil {
		c := in.setups.oldest
		if wait := c.graceLeft(now); wait > 0 {
			return wait
		}
		if !c.readLateRequest(now) {
			c.closeForRoom()
			return 0
		}
	}
	return acceptPause
}

// graceLeft returns how much longer a set-up must not be closed to make room.
func (c *conn) graceLeft(now time.Time) time.Duration {
	all := c.in.cfg.RequestTimeout
	return c.timer.at.Sub(now) - (all - all/graceShare)
}

// readLateRequest reads from the connection once more, in case its Request has arrived but was not
// read yet. It reports whether the set-up is done.
func (c *conn) readLateRequest(now time.Time) bool {
	c.readInput()
	c.applyCoreState(now)
	return c.in.setups.oldest != c
}

// startSetup starts the set-up of a new TCP connection. Its Request must arrive within
// RequestTimeout. Usually it has arrived already.
func (in *instance) startSetup(l *listener, fd int, peer unix.Sockaddr) {
	if in.conns >= in.cfg.MaxConns {
		in.closeFD(fd)
		l.recordStranger(l.id.local, unmapAddr(in.addrOf(peer)), &core.Error{
			Op: "request", Errno: unix.ENOMEM, Text: "the device has all its connections (MaxConns)",
		})
		return
	}
	c := newConn(in)
	c.arriving = &arriving{l, l.id.local, unmapAddr(in.addrOf(peer))}
	if l.id.local.IsWildcard() {
		local, err := in.sys.Local(fd)
		if err != nil { // the peer has already reset it
			in.closeFD(fd)
			c.arriving.recordStranger(err)
			return
		}
		c.arriving.local = unmapAddr(in.addrOf(local))
	}
	err := c.core.Init(core.Config{
		CRC: in.cfg.CRC, Pool: &in.pool, SetupTimeout: in.cfg.RequestTimeout, MessageTimeout: in.cfg.MessageTimeout,
	}, c)
	if err == nil {
		err = c.attachFD(fd, eventloop.Readable)
	}
	if err != nil {
		in.closeFD(fd)
		c.arriving.recordStranger(err)
		return
	}
	in.setups.push(c, in.cfg.MaxSetups)
	now := in.loop.Now()
	c.core.BeginSetup(now)
	c.readInput()
	c.applyCoreState(now)
}

// requestDone ends an inbound connection's set-up phase, because its Request has arrived or its
// socket is closed. A refused connection still counts as a set-up until its peer has read the
// reason.
func (c *conn) requestDone() {
	if c.arriving == nil || !c.in.setups.remove(c) {
		return
	}
	for len(c.in.crowded) > 0 {
		c.in.crowded[0].resumeAccepting()
	}
}

// Request implements core.Upcalls: it makes the identifier that a ConnectRequest reports.
func (c *conn) Request(r core.Request) {
	in := c.in
	c.requestDone()
	from := c.arriving
	child := &driverID{
		in: in, h: in.up.NewHandle(), fd: -1, local: from.local, peer: from.peer, device: true, child: true, conn: c,
		tos: from.lis.id.tos,
	}
	in.ids[child.h] = child
	c.id = child
	c.asked = depth{maxRDAtom, maxRDAtom}
	if r.Enhanced {
		c.asked = depth{paramDepth(r.IRD), paramDepth(r.ORD)}
	}
	from.lis.id.queueEvent(cmid.DriverEvent{
		Kind: states.KindConnectRequest, Child: child, PrivateData: r.PrivateData,
		Param: c.asked.param(),
	})
	c.arriving = nil
}

// depth is what a Request has asked for.
type depth struct{ ird, ord uint8 }

// param returns d as the responder's limits.
func (d depth) param() cmid.ConnParam {
	return cmid.ConnParam{ResponderResources: d.ord, InitiatorDepth: d.ird}
}

var (
	_ cmid.StrangerCounter = (*instance)(nil)
	_ cmid.StrangerCounter = (*driverID)(nil)
	_ cmid.StarvedCounter  = (*driverID)(nil)
)

// Strangers counts the connections that ended without an MPA Request. Any goroutine.
func (in *instance) Strangers() uint64 { return in.strangers.Load() }

// Strangers counts those of a listener.
func (id *driverID) Strangers() uint64 { return id.strangers }

// Starved counts how often a listener has paused because it could not accept.
func (id *driverID) Starved() uint64 { return id.starved }

// recordStranger records that the connection has ended without a Request. The text that err quotes
// from the peer is short and escaped.
func (a *arriving) recordStranger(err error) { a.lis.recordStranger(a.local, a.peer, err) }

// recordStranger records a connection to l.
func (l *listener) recordStranger(local, peer cmid.Addr, err error) {
	in := l.id.in
	in.strangers.Add(1)
	l.id.strangers++
	n, ok := in.drv.strangers.shouldLog(in.loop.Now())
	if !ok {
		return
	}
	// Posted, because a logger that panics here would leave the connection's end half done.
	_ = in.loop.Post(func() {
		in.loop.Logger().Info("iwarp: a connection without an MPA Request",
			"device", in.cfg.Device, "local", local, "peer", peer, "err", err, "unlogged", n)
	})
}

// closeForRoom closes c, to make room for another one.
func (c *conn) closeForRoom() {
	c.close()
	if c.arriving != nil && !c.over { // otherwise it was counted when it was refused
		c.arriving.recordStranger(&core.Error{Op: "request", Errno: unix.EBUSY, Text: "no complete Request yet, and others need the room"})
	}
}
