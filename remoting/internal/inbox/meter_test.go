package inbox

import (
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// The peer queues messages for a target with a long line, sends a little whenever the target has
// consumed that, and sends as usual when it has consumed everything. Others are not metered.
func TestMetering(t *testing.T) {
	var said []Metering
	cfg := Config{Window: 8 << 10, Bytes: 128 << 10, Meter: func(target string, what Metering) {
		if target != "a" {
			panic("another target is metered: " + target)
		}
		said = append(said, what)
	}}
	inHomes(t, cfg, func(r *rig, opts []actor.PropsOption) {
		said = nil
		a, b := r.spawnTarget("a", opts...), r.spawnTarget("b", opts...)
		a.suspend()
		r.deliver(a.pid, 1000, notes(40)...)
		r.deliver(b.pid, 1000, notes(10)...)
		if !slices.Equal(said, []Metering{Meter}) {
			r.t.Errorf("said %v while nothing is consumed", said)
		}
		r.do(func(in *Inbox) { in.MeterAgain() })
		if !slices.Equal(said, []Metering{Meter, Meter}) {
			r.t.Errorf("said %v when the peer has connected again", said)
		}
		a.resume()
		r.Advance(time.Minute)
		if n := len(said); n < 3 || said[n-1] != Free || slices.Contains(said[2:n-1], Meter) {
			r.t.Errorf("said %v in the end", said)
		}
		a.wantNotes(r, "metered", 40)
		b.wantNotes(r, "beside it", 10)
	}, "bounded")
}

// Targets with little get more while the inbox is full, up to a reserve.
func TestReserveForTargetsWithLittle(t *testing.T) {
	inRig(t, Config{Window: 8 << 10, Bytes: 32 << 10}, func(r *rig) {
		a := r.spawnTarget("a", r.Runtime().OffLoop())
		a.suspend()
		r.deliver(a.pid, 1000, notes(32)...)
		r.do(func(in *Inbox) {
			if !in.Full() || !in.Stops("a") || in.Stops("b") {
				r.t.Errorf("full: %v; a is stopped: %v; b is stopped: %v", in.Full(), in.Stops("a"), in.Stops("b"))
			}
		})
		r.deliver(a.pid, 1000, notes(10)...)
		r.do(func(in *Inbox) {
			if !in.Stops("b") {
				r.t.Errorf("with %d bytes there is still a reserve", in.pending)
			}
		})
	})
}

// The waiting messages of a metered target that consumes nothing for Patience are refused, although
// the inbox is not full: their senders may be waiting for it.
func TestMeteredGetsStuck(t *testing.T) {
	cfg := Config{Window: 8 << 10, Bytes: 128 << 10, Meter: func(string, Metering) {}}
	inRig(t, cfg, func(r *rig) {
		a := r.spawnTarget("a", r.Runtime().OffLoop())
		a.suspend()
		r.deliver(a.pid, 1000, notes(40)...)
		r.Advance(defaultPatience - 2*time.Second)
		early := len(r.refusals())
		r.Advance(4 * time.Second)
		if n := len(r.refusals()); early != 0 || n == 0 {
			r.t.Errorf("%d were refused within Patience, and %d in all", early, n)
		}
		a.resume()
		r.Advance(time.Minute)
		if n := len(r.refusals()) + len(a.notes()); n != 40 {
			r.t.Errorf("%d were received or refused, of 40", n)
		}
	})
}
