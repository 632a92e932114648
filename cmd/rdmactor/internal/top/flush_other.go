//go:build !linux

package top

import "golang.org/x/sys/unix"

// tcflush(3) of output that a terminal has not yet read.
const (
	flushRequest = unix.TIOCFLUSH
	flushOutput  = 2 // FWRITE
)
