package cmid

import (
	"math"
	"testing"
	"time"
)

// TestAckTimeout: a timeout is never less than requested, and never 0, which the verbs take for
// none.
func TestAckTimeout(t *testing.T) {
	for d, want := range map[time.Duration]int{
		1: 1, 8192: 1, 8193: 2, 16384: 2, 16385: 3,
		time.Millisecond: 8, 67108864: 14, time.Second: 18, 2147483648: 19, math.MaxInt64: 31,
	} {
		tr := Transport{AckTimeout: d}
		if got := tr.ackTimeout(); got != want {
			t.Errorf("%v is the exponent %d, want %d", d, got, want)
		}
		if got := AckTimeout(uint8(want)); got < d && want < 31 {
			t.Errorf("%v has become %v", d, got)
		}
	}
}

// TestRNRTimer: the pause is never shorter than requested, up to InfiniBand's longest, and never 0,
// which the verbs take for 655 ms.
func TestRNRTimer(t *testing.T) {
	for d, want := range map[time.Duration]uint8{
		1: 1, 10_000: 1, 10_001: 2, 30_000: 3, 60_000: 5, 640_000: 12, time.Millisecond: 14, 491_520_000: 31, math.MaxInt64: 31,
	} {
		p := (&Transport{MinRNRTimer: d}).ConnectParam(nil)
		if p == nil || p.MinRNRTimer != want {
			t.Errorf("%v: %+v, want the exponent %d", d, p, want)
		} else if got := rnrDuration(want); got < d && want < 31 {
			t.Errorf("%v has become %v", d, got)
		}
	}
	if rnrDuration(0) != 655_360*time.Microsecond || rnrDuration(DefaultMinRNRTimer) != 640*time.Microsecond {
		t.Errorf("0 is %v, the default %v", rnrDuration(0), rnrDuration(DefaultMinRNRTimer))
	}
}

// TestTransportCounts: a Transport without counts leaves ConnParam nil, and its counts end on every
// device.
func TestTransportCounts(t *testing.T) {
	own := &ConnParam{RetryCount: 7}
	for _, tt := range []struct {
		Transport
		connect, accept [2]uint8
	}{
		{Transport{RetryCount: 3}, [2]uint8{3, 7}, [2]uint8{3, 7}},
		{Transport{RetryCount: 7, RNRRetryCount: 9}, [2]uint8{6, 7}, [2]uint8{6, 7}},
		{Transport{RNRRetryCount: 2}, [2]uint8{6, 2}, [2]uint8{0, 2}},
	} {
		c, a := tt.ConnectParam(nil), tt.AcceptParam(nil)
		if got := [2]uint8{c.RetryCount, c.RNRRetryCount}; got != tt.connect || c.InitiatorDepth != 255 || c.ResponderResources != 255 {
			t.Errorf("%+v: connects with %+v, want %v", tt.Transport, *c, tt.connect)
		}
		if got := [2]uint8{a.RetryCount, a.RNRRetryCount}; got != tt.accept || a.InitiatorDepth != 255 || a.ResponderResources != 255 {
			t.Errorf("%+v: accepts with %+v, want %v", tt.Transport, *a, tt.accept)
		}
		if tt.ConnectParam(own) != own || tt.AcceptParam(own) != own {
			t.Errorf("%+v changes what a command says", tt.Transport)
		}
	}
	if none := (&Transport{TrafficClass: 1, AckTimeout: 1}); none.ConnectParam(nil) != nil || none.AcceptParam(nil) != nil {
		t.Error("a Transport without counts says something of them")
	}
}
