package main

import (
	"time"

	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// How much is kept for who returns. Those whose link, or whose room, was lost come back at
// different times, and miss nothing.
const (
	recentFor  = 10 * time.Second
	recentMost = 1 << 20 // bytes
)

// recent holds the latest lines of a room, the newest last.
type recent struct {
	lines []past
	bytes int
	sent  uint64 // lines, including those that were dropped
}

// past is a line that was sent to all but one.
type past struct {
	line room.Line
	change
	but string
	at  time.Time
}

// add keeps a line.
func (r *recent) add(now time.Time, but string, l room.Line, c change) {
	r.sent++
	r.lines = append(r.lines, past{l, c, but, now})
	r.bytes += len(l.Text)
	for r.bytes > recentMost || now.Sub(r.lines[0].at) > recentFor {
		r.bytes -= len(r.lines[0].line.Text)
		r.lines[0] = past{}
		r.lines = r.lines[1:]
	}
}

// since returns the lines behind the first so many, as far as they are there, and how many are not.
func (r *recent) since(seen uint64) (lines []past, missed uint64) {
	first := r.sent - uint64(len(r.lines)) // lines that were sent before those
	if seen < first {
		return r.lines, first - seen
	}
	return r.lines[min(seen-first, uint64(len(r.lines))):], 0
}
