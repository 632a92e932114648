package perf

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
)

// TestHalves: latency of send and write is half of the round trip, of read the whole, as perftest
// prints them.
func TestHalves(t *testing.T) {
	for op, want := range map[Op]float64{Send: 50, Write: 50, Read: 100} {
		r := &run{Plan: Plan{Test: Test{op, Latency, 64, 1}}, times: stats.NewTimes(3)}
		r.times.Add(100 * time.Microsecond)
		got := r.newResult(1, time.Second, 30*time.Microsecond)
		if x := got.Times; x.P50US < want*0.999 || x.P50US > want*1.001 || x.MaxUS < want*0.999 || x.MaxUS > want*1.001 || got.CPUUS != 30 {
			t.Errorf("%s: a round trip of 100 us is %+v, want %v us", op, got, want)
		}
	}
}

func TestRate(t *testing.T) {
	r := &run{Plan: Plan{Test: Test{Send, Bandwidth, 1 << 20, 4}}}
	if x := r.newResult(10, 2*time.Second, 0).Rate; x.MiBPerS != 5 || x.MsgPerSec != 5 || x.Depth != 4 || x.Seconds != 2 {
		t.Errorf("10 MiB in 2 s are %+v, want 5 MiB/s", x)
	}
}

// TestWarmUp: messages that arrive before the end of the warm-up, or after the last message, are
// not counted.
func TestWarmUp(t *testing.T) {
	r := &run{Plan: Plan{Test: Test{Send, Bandwidth, 64, 4}, WarmUp: time.Hour, Count: 3}, begun: time.Now()}
	if r.countArrived(1000) || r.measure {
		t.Fatal("the warm-up ended at once")
	}
	r.begun = r.begun.Add(-time.Hour)
	if r.countArrived(1) || !r.measure {
		t.Fatal("the warm-up did not end")
	}
	if r.countArrived(2) {
		t.Fatal("2 messages were enough, 3 were asked for")
	}
	if !r.countArrived(1) || r.result.Count != 3 {
		t.Fatalf("%+v: want 3 messages", r.result)
	}
	if !r.countArrived(5) || r.result.Count != 3 {
		t.Errorf("%+v: want 3 messages still", r.result)
	}
}
