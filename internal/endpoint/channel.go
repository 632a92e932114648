package endpoint

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// Channel is an event channel on a separate loop.
type Channel struct {
	*cmid.Channel
	fds     [2]unix.PollFd // descriptors of the channel and of stopped
	stopped *os.File       // readable once wake is closed
	wake    *os.File
}

// Open opens d on a new loop. The caller must Close the channel.
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

// Stop ends the current Wait, or the next one. Any goroutine may call it.
func (c *Channel) Stop() { _ = c.wake.Close() }

// Close destroys the identifiers that are left, and closes the channel.
func (c *Channel) Close() error {
	c.Stop()
	_ = c.stopped.Close()
	return c.Channel.Close()
}

// Drain calls handle with each event that is available. It also delivers completions. An error of
// handle ends Drain.
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

// Woken is the reason why Wait has returned.
type Woken uint8

// The reasons.
const (
	Ready   Woken = iota // there may be something to drain
	Late                 // nothing happened within the time
	Stopped              // requested by Stop, reported once
)

// Wait waits until there may be something to drain, for at most d. A negative d means without a
// limit.
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
		c.fds[1] = unix.PollFd{Fd: -1} // poll(2) ignores it from now on
		return Stopped, nil
	}
	return Ready, nil
}

// Listen makes a listener on at. A backlog of 0 means the device's maximum.
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
