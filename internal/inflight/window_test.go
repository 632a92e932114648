package inflight

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A window is full with the message that reaches either limit, and has room again with the notice
// of the oldest part.
func TestWindow(t *testing.T) {
	limits := Limits{Most: Amount{4, 100}, Part: Amount{2, 50}}
	for name, c := range map[string]struct {
		bytes  []int  // of each message
		notify string // messages with which a notice is due
		left   Amount // behind the first notice
	}{
		"many messages":   {[]int{1, 1, 1, 1}, ".!.!", Amount{2, 2}},
		"large messages":  {[]int{50, 50}, "!!", Amount{1, 50}},
		"one too large":   {[]int{1, 1000}, ".!", Amount{}},
		"an odd one last": {[]int{60, 1, 60}, "!.!", Amount{2, 61}},
	} {
		w := Window{Limits: &limits}
		if w.Noticed() {
			t.Errorf("%s: a notice has come before a message", name)
		}
		notify := ""
		for _, n := range c.bytes {
			if w.Full() {
				t.Errorf("%s: full with %+v, at most %+v", name, w.Amount, limits.Most)
			}
			mark := "."
			if w.Add(n) {
				mark = "!"
			}
			notify += mark
		}
		if !w.Full() || notify != c.notify {
			t.Errorf("%s: notices %s, want %s; %+v in flight is full: %v", name, notify, c.notify, w.Amount, w.Full())
		}
		if !w.Noticed() || w.Full() || w.Amount != c.left {
			t.Errorf("%s: %+v in flight behind the first notice, want %+v and room", name, w.Amount, c.left)
		}
	}
}
