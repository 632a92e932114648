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

// BenchmarkPostRoundTrip: another goroutine posts and waits for the answer.
func BenchmarkPostRoundTrip(b *testing.B) {
	for name, mode := range map[string]eventloop.WaitMode{"block": eventloop.Block, "spin": eventloop.Spin, "busy": eventloop.Busy} {
		b.Run(name, func(b *testing.B) {
			l := benchLoop(b, eventloop.Config{Wait: mode})
			start(b, l)
			answer := make(chan struct{}, 1)
			fn := func() {
				answer <- struct{}{}
				l.Handoff()
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
