package actor

import (
	"math"
	"testing"
	"time"
)

// Fields of an IDConfig that are zero or negative get their defaults. Fields that are too large
// get the maximum.
func TestIDConfigDefaults(t *testing.T) {
	rt := &Runtime{cfg: Config{Keepalive: Keepalive{Idle: time.Second}}.withDefaults()}
	d := IDConfig{}.withDefaults(&rt.cfg)
	if d.MaxMessage != 64<<10 || d.Credits != 32 || d.AcceptTimeout != 8*time.Second || d.Keepalive != (Keepalive{time.Second, 45 * time.Second}) {
		t.Errorf("by default: %+v", d)
	}
	for _, c := range []struct{ says, want IDConfig }{
		{IDConfig{MaxMessage: -1, Credits: -1, AcceptTimeout: -1}, *d},
		{IDConfig{MaxMessage: 1, Credits: 1}, IDConfig{MaxMessage: 1 << 10, Credits: 1}},
		{IDConfig{MaxMessage: 4<<10 + 1}, IDConfig{MaxMessage: 5 << 10}},
		{IDConfig{MaxMessage: 1<<30 + 1, Credits: 1 << 16}, IDConfig{MaxMessage: 1 << 30, Credits: 0xFFFF}},
		{IDConfig{MaxMessage: math.MaxInt, Credits: math.MaxInt}, IDConfig{MaxMessage: 1 << 30, Credits: 0xFFFF}},
		{IDConfig{Keepalive: Keepalive{Idle: -1}}, IDConfig{Keepalive: Keepalive{-1, 45 * time.Second}}},
		{IDConfig{Keepalive: Keepalive{Gone: time.Hour}}, IDConfig{Keepalive: Keepalive{time.Second, time.Hour}}},
	} {
		got, want := c.says.withDefaults(&rt.cfg), c.want.withDefaults(&rt.cfg)
		if got.MaxMessage != want.MaxMessage || got.Credits != want.Credits || got.AcceptTimeout != want.AcceptTimeout || got.Keepalive != want.Keepalive {
			t.Errorf("%+v comes to %+v, want %+v", c.says, got, want)
		}
	}
}
