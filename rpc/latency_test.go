package rpc

import (
	"testing"
	"time"
)

// What a slow call has shown is forgotten after a second or two without answers, or after some
// tens of fast answers. Refusals, which are fast, show nothing.
func TestLatency(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	slow := func() *latency {
		l := &latency{}
		l.begin(now)
		l.end(time.Second, now, CodeDeadline)
		return l
	}
	if got := slow().expected(now); got != time.Second {
		t.Errorf("%v after a call of a second", got)
	}
	if got := slow().expected(now.Add(3 * time.Second)); got > 60*time.Millisecond {
		t.Errorf("%v three seconds later", got)
	}
	for code, want := range map[Code]time.Duration{0: 20 * time.Millisecond, CodeOverloaded: time.Second} {
		l := slow()
		for range 40 {
			l.begin(now)
			l.end(10*time.Millisecond, now, code)
		}
		if got := l.expected(now); got > want || got < want/2 {
			t.Errorf("%v after 40 fast answers with code %d, want about %v", got, code, want)
		}
	}
}
