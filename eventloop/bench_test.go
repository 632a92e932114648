package eventloop_test

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

func benchLoop(b *testing.B, cfg eventloop.Config) *eventloop.Loop {
	b.Helper()
	l, err := eventloop.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkPostRoundTrip: another goroutine posts and waits for the answer. Without Handoff the
// loop blocks before the goroutine it has answered runs.
func BenchmarkPostRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name    string
		mode    eventloop.WaitMode
		handoff bool
	}{
		{"block", eventloop.Block, true},
		{"block-without-handoff", eventloop.Block, false},
		{"spin", eventloop.Spin, true},
		{"busy", eventloop.Busy, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := benchLoop(b, eventloop.Config{Wait: c.mode})
			start(b, l)
			answer := make(chan struct{}, 1)
			fn := func() {
				answer <- struct{}{}
				if c.handoff {
					l.Handoff()
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Post(fn); err != nil {
					b.Fatal(err)
				}
				<-answer
			}
		})
	}
}

// BenchmarkSchedule: one Runnable's Schedule and Run, on the loop's goroutine.
func BenchmarkSchedule(b *testing.B) {
	const batch = 100
	l := benchLoop(b, eventloop.Config{Poller: eventlooptest.NewPoller()})
	turn(b, l)
	b.Cleanup(func() { shutdown(b, l) })
	r := &runFunc{func(int) bool { return false }}
	b.ReportAllocs()
	for b.Loop() {
		for range batch {
			if err := l.Schedule(r); err != nil {
				b.Fatal(err)
			}
		}
		turn(b, l)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/runnable")
}

// BenchmarkEvent: a whole turn for one ready fd, without the kernel.
func BenchmarkEvent(b *testing.B) {
	l := benchLoop(b, eventloop.Config{Poller: &spinPoller{ready: 1}})
	turn(b, l)
	b.Cleanup(func() { shutdown(b, l) })
	if _, err := l.Add(1, eventloop.Readable, readyFunc(func(eventloop.Events) {})); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		turn(b, l)
	}
}

// BenchmarkTimer: arm and stop one timer among a thousand.
func BenchmarkTimer(b *testing.B) {
	l := benchLoop(b, eventloop.Config{Poller: eventlooptest.NewPoller()})
	b.Cleanup(func() { shutdown(b, l) })
	for i := range 1000 {
		l.AfterFunc(time.Hour+time.Duration(i), func() {})
	}
	t := l.NewTimer(func() {})
	b.ReportAllocs()
	for b.Loop() {
		t.Reset(time.Minute)
		t.Stop()
	}
}
