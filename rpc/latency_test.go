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
		l.callBegun(now)
		l.callEnded(time.Second, now, CodeDeadline)
		return l
	}
	if got := slow().expectedLatency(now); got != time.Second {
		t.Errorf("%v after a call of a second", got)
	}
	if got := slow().expectedLatency(now.Add(3 * time.Second)); got > 60*time.Millisecond {
		t.Errorf("%v three seconds later", got)
	}
	for code, want := range map[Code]time.Duration{0: 20 * time.Millisecond, CodeOverloaded: time.Second} {
		l := slow()
		for range 40 {
			l.callBegun(now)
			l.callEnded(10*time.Millisecond, now, code)
		}
		if got := l.expectedLatency(now); got > want || got < want/2 {
			t.Errorf("%v after 40 fast answers with code %d, want about %v", got, code, want)
		}
	}
}

// The silence of a server lasts through calls that are given up one after the other, as attempts
// are whose call another server has answered. It ends with an answer, and fades in idle time.
func TestSilenceOfGivenUpCalls(t *testing.T) {
	const each = 15 * time.Millisecond
	now := time.Unix(1_000_000_000, 0)
	l := &latency{}
	call := func(code Code) {
		l.callBegun(now)
		now = now.Add(each)
		l.callEnded(each, now, code)
	}
	for range 4 {
		call(CodeCanceled)
	}
	if got := l.expectedLatency(now); got < 50*time.Millisecond || got > 4*each {
		t.Errorf("%v after four calls that were given up after %v each", got, each)
	}
	now = now.Add(3 * time.Second)
	l.callBegun(now)
	if got := l.expectedLatency(now); got > 5*time.Millisecond {
		t.Errorf("%v at the beginning of a call three seconds later", got)
	}
	l.callEnded(0, now, 0)
	call(CodeCanceled)
	if got := l.expectedLatency(now); got != each {
		t.Errorf("%v after an answer and a call that was given up after %v", got, each)
	}
}
