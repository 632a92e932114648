//go:build !linux

package top

import "golang.org/x/sys/unix"

// tcflush(3) of what a terminal has not taken yet.
const (
	flushRequest = unix.TIOCFLUSH
	flushOutput  = 2 // FWRITE
)
