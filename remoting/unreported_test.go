package remoting

import "testing"

// What finds no room beside subscribers that are too slow is dropped, and counted.
func TestUnreported(t *testing.T) {
	n := &Node{cfg: Config{Queue: eventBytes}}
	r := &reporter{n: n, p: newPeer(n, 1, "b")}
	for i, want := range []bool{true, true, false, false} {
		if got := r.take(eventBytes); got != want {
			t.Errorf("event %d: taken: %t", i, got)
		}
	}
	if got := r.p.info().Counts.Unreported; got != 2 {
		t.Errorf("2 were dropped, and the peer says %d", got)
	}
}
