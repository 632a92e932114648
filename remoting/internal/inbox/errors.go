package inbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Why a message was refused.
var (
	// ErrSlow: the target left its messages unconsumed for so long that others had to wait.
	ErrSlow = fmt.Errorf("its target does not consume what it has been sent: %w", unix.ENOBUFS)
	// ErrLeft: its peer has left, and what such peers have left behind takes too much room.
	ErrLeft = fmt.Errorf("too much waits of peers that have left: %w", unix.ENOBUFS)
	// ErrClosed: the inbox was closed before there was room for the message.
	ErrClosed = fmt.Errorf("the link ended before its target had room: %w", unix.ECANCELED)
	// ErrNothing: the message is nil, which no actor can receive.
	ErrNothing = fmt.Errorf("the message is nil: %w", unix.EINVAL)
)

// errExit is how a process failed that was sent to and has exited.
var errExit = errors.New("runtime.Goexit was called")
