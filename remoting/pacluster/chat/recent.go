package main

import (
	"time"

	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// Bounds on the lines that are kept for returning people. After the loss of a link, or of a room,
// they return at different times without missing a line.
const (
	recentFor  = 10 * time.Second
	recentMost = 1 << 20 // bytes
)

// recent holds the latest lines of a room, the newest last.
type recent struct {
	lines []past
	bytes int
	sent  uint64 // lines, including the dropped ones
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

// since returns the kept lines behind the first seen ones, and how many in between were dropped.
func (r *recent) since(seen uint64) (lines []past, missed uint64) {
	first := r.sent - uint64(len(r.lines)) // lines sent before the kept ones
	if seen < first {
		return r.lines, first - seen
	}
	return r.lines[min(seen-first, uint64(len(r.lines))):], 0
}
