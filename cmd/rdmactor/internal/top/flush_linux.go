package top

import "golang.org/x/sys/unix"

// tcflush(3) of output that a terminal has not yet read.
const (
	flushRequest = unix.TCFLSH
	flushOutput  = unix.TCOFLUSH
)
