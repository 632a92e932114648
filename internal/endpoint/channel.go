package endpoint

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// Channel is an event channel of its own loop.
type Channel struct {
	*cmid.Channel
	fds     [2]unix.PollFd // the channel's, and that of stopped
	stopped *os.File       // readable when wake was closed
	wake    *os.File
}

// Open opens d. Close gives it back.
func Open(d cmid.Driver) (*Channel, error) {
	ch, err := cmid.OpenChannel(d)
	if err != nil {
		return nil, err
	}
	c := &Channel{Channel: ch}
	fd, err := ch.FD()
	if err == nil {
		c.stopped, c.wake, err = os.Pipe()
	}
	if err != nil {
		return nil, errors.Join(err, ch.Close())
	}
	c.fds = [2]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(c.stopped.Fd()), Events: unix.POLLIN}}
	return c, nil
}

// Stop ends a Wait, this one or the next. Any goroutine.
func (c *Channel) Stop() { _ = c.wake.Close() }

// Close destroys every identifier that is left.
func (c *Channel) Close() error {
	c.Stop()
	_ = c.stopped.Close()
	return c.Channel.Close()
}

// Drain handles the events there are. Completions are taken meanwhile. handle's error ends it.
func (c *Channel) Drain(handle func(*cmid.ID, cmid.Event) error) error {
	for {
		ev, id, err := c.GetEvent()
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err == nil {
			err = handle(id, ev)
		}
		if err != nil {
			return err
		}
	}
}

// Woken says why Wait has returned.
type Woken uint8

// The reasons.
const (
	Ready   Woken = iota // for Drain, or for no reason
	Late                 // nothing happened for so long
	Stopped              // by Stop; once
)

// Wait waits until there may be something to drain, for at most d. A negative d is for ever.
func (c *Channel) Wait(d time.Duration) (Woken, error) {
	limit := -1
	if d >= 0 {
		limit = int(d/time.Millisecond) + 1
	}
	n, err := unix.Poll(c.fds[:], limit)
	switch {
	case errors.Is(err, unix.EINTR):
		return Ready, nil
	case err != nil:
		return Ready, fmt.Errorf("poll: %w", err)
	case n == 0:
		return Late, nil
	case c.fds[1].Revents != 0:
		c.fds[1] = unix.PollFd{Fd: -1} // poll(2) leaves it out
		return Stopped, nil
	}
	return Ready, nil
}

// Listen makes a listener on at. With backlog 0 it has as many requests as the device takes.
func Listen(ch *cmid.Channel, ps cmid.PortSpace, at cmid.Addr, backlog int) (*cmid.ID, error) {
	id, err := ch.CreateID(ps)
	if err != nil {
		return nil, err
	}
	if err = id.BindAddr(at); err == nil {
		err = id.Listen(backlog)
	}
	if err != nil {
		return nil, errors.Join(err, id.Destroy())
	}
	return id, nil
}
