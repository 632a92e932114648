package main

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/examples/chat/room"
)

func TestRecent(t *testing.T) {
	var r recent
	now := time.Now()
	say := func(n int) {
		for range n {
			r.add(now, "ann", room.Line{Text: "x"}, change{})
		}
	}
	check := func(seen uint64, wantLines int, wantMissed uint64) {
		t.Helper()
		if lines, missed := r.since(seen); len(lines) != wantLines || missed != wantMissed {
			t.Errorf("since %d: %d lines, %d missed; want %d, %d", seen, len(lines), missed, wantLines, wantMissed)
		}
	}
	check(0, 0, 0)
	say(5)
	check(0, 5, 0)
	check(3, 2, 0)
	check(5, 0, 0)
	check(99, 0, 0) // more than were sent
	now = now.Add(recentFor + 1)
	say(1)
	check(0, 1, 5)
	check(5, 1, 0)
	r.add(now, "ann", room.Line{Text: strings.Repeat("x", recentMost)}, change{})
	check(0, 1, 6)
	if r.bytes != recentMost {
		t.Errorf("%d bytes are kept", r.bytes)
	}
	r.add(now, "ann", room.Line{Text: strings.Repeat("x", recentMost)}, change{})
	check(6, 1, 1)
}
