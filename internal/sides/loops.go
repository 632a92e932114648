package sides

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// Loops are event loops that one goroutine turns.
type Loops struct {
	// Time is the loops' virtual time. If it is nil, they use real time.
	Time *eventlooptest.Clock
	// Poller makes the loops' pollers, if it is not nil.
	Poller func() eventloop.Poller
	loops  []*eventloop.Loop
}

// TurnsPerStep is a number of turns of each loop that is enough to do all work that can be done
// now.
const TurnsPerStep = 6

// Open makes a loop and adds it to l.
func (l *Loops) Open(name string) (*eventloop.Loop, error) {
	cfg := eventloop.Config{Name: name}
	switch {
	case l.Time != nil:
		cfg.Clock, cfg.Poller = l.Time, eventlooptest.NewPollerOn(l.Time)
	case l.Poller != nil:
		cfg.Poller = l.Poller()
	}
	loop, err := eventloop.New(cfg)
	if err == nil {
		l.loops = append(l.loops, loop)
	}
	return loop, err
}

// Turn turns the loops until they have done all work that can be done now.
func (l *Loops) Turn() error {
	for range TurnsPerStep {
		for _, loop := range l.loops {
			if err := loop.Turn(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Wait waits in real time until a loop has something to do, for at most d.
func (l *Loops) Wait(d time.Duration) error {
	fds := make([]unix.PollFd, len(l.loops))
	for i, loop := range l.loops {
		fd, err := loop.FD()
		if err != nil {
			return err
		}
		fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	if _, err := unix.Poll(fds, int(d/time.Millisecond)); !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}

// Shutdown ends the loops.
func (l *Loops) Shutdown() error {
	var errs []error
	for _, loop := range l.loops {
		errs = append(errs, loop.Shutdown(context.Background()))
	}
	return errors.Join(errs...)
}
