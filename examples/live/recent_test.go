package live

import (
	"context"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

var echo = rpc.NewRawMethod("test.Echo")

// TestRecent: the calls of the last 10 to 20 s are shown, and after a pause the older ones once
// more.
func TestRecent(t *testing.T) {
	rt, _ := program(t)
	server := rpc.NewServer(rt)
	rpc.HandleRaw(server, echo, func(_ context.Context, _, reply []byte) ([]byte, error) { return reply, nil })
	at, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	there, _ := program(t)
	c, err := rpc.Dial(t.Context(), there, at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer c.Close()
	var r Recent
	now := time.Now()
	// a connection times its first 64 calls
	for i, step := range []struct {
		seconds, calls int
		want           uint64
	}{
		{0, 5, 5},
		{1, 2, 2},
		{8, 0, 2},
		{2, 1, 3},
		{8, 1, 4},
		{2, 1, 2},
		{5, 0, 2},
		{3600, 4, 4},
		{1, 1, 1},
		{5, 0, 1},
		{30, 0, 1},
		{1, 0, 0},
	} {
		now = now.Add(time.Duration(step.seconds) * time.Second)
		for range step.calls {
			if _, err := rpc.CallRaw(t.Context(), c, echo, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		m := r.at(now, c.Inspect())[0]
		if n := m.Latency.Count(); n != step.want || (m.P99 > 0) != (n > 0) || (m.P50 > 0) != (n > 0) {
			t.Errorf("step %d: %d calls are recent, p99 %v; want %d", i, n, m.P99, step.want)
		}
	}
}
