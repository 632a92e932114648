package reconnect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// stuckServer starts a server that keeps its two credits: two messages leave, and the others wait.
func stuckServer(r *rig, cfg reconnect.Config) (conn *actor.PID) {
	r.serve(rdma.IDConfig{MaxMessage: 1 << 10, Credits: 2})
	r.spawn(cfg)
	conn, _ = r.accept()
	return conn
}

// At the end of a generation messages were consumed, were sent, or still wait. Those that were
// sent are not repeated, unless they are Idempotent: then in their old places.
func TestFates(t *testing.T) {
	onFlavors(t, func(r *rig) {
		conn := stuckServer(r, reconnect.Config{})
		r.send(1, "one")
		r.hears("one")
		r.released()
		r.Wait()
		r.send(2, "two")
		r.sendTwice(3, "three")
		r.send(4, "four")
		r.sendTwice(5, "five")
		r.hears("two", "three") // two is released: four leaves
		r.Disconnect(conn)
		known, down := r.untilDown()
		want := slices.Concat(fates(reconnect.Delivered, false, 1, 2), fates(reconnect.Unknown, true, 3),
			fates(reconnect.Unknown, false, 4), fates(reconnect.Unsent, true, 5))
		if !slices.Equal(known, want) || down.Counts != (reconnect.Counts{Delivered: 2, Unknown: 1}) || down.Waiting != 2 {
			t.Errorf("%+v, %+v, want %+v", known, down, want)
		}
		r.ended()
		r.accept()
		r.hears("three", "five")
		r.released()
		if c := r.finish(); c.Err != nil || c.Counts != (reconnect.Counts{Delivered: 4, Unknown: 1}) {
			t.Errorf("%+v", c)
		}
	})
}

// An owner that uses no queue learns immediately which messages were not sent, and may send them
// again itself.
func TestFailFast(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve(rdma.IDConfig{MaxMessage: 1 << 10, Credits: 2})
		r.spawn(reconnect.Config{FailFast: true})
		r.send(1, "too early")
		if f := actortest.Next[*reconnect.Refused](r.owner); f.Tag != 1 || !is(f, reconnect.ErrDown) || !is(f, unix.ENOTCONN) {
			t.Errorf("%+v", f)
		}
		conn, _ := r.accept()
		for tag := range uint64(4) {
			r.sendTwice(tag, "x")
		}
		r.Wait()
		r.Disconnect(conn)
		down := actortest.Next[*reconnect.Down](r.owner)
		want := slices.Concat(fates(reconnect.Unknown, false, 0, 1), fates(reconnect.Unsent, false, 2, 3))
		if !slices.Equal(down.Fates, want) || down.Counts != (reconnect.Counts{Unsent: 2, Unknown: 2}) || down.Waiting != 0 {
			t.Errorf("%+v, want %+v", down, want)
		}
	})
}

// A message that is larger than the peer takes is refused as soon as that is known.
func TestTooLarge(t *testing.T) {
	inRig(t, func(r *rig) {
		r.serve(rdma.IDConfig{MaxMessage: 1 << 10, Credits: 2})
		r.spawn(reconnect.Config{})
		large := make([]byte, 1<<10+1)
		r.owner.Send(r.link, reconnect.NewSend(1, large))
		r.send(2, "small")
		r.accept()
		for range 2 {
			if f := actortest.Next[*reconnect.Refused](r.owner); f.Tag != 1 || !is(f, rdma.ErrTooLarge) || !is(f, unix.EMSGSIZE) {
				t.Errorf("%+v", f)
			}
			r.owner.Send(r.link, reconnect.NewSend(1, large))
		}
		r.hears("small")
	})
}

// A queue that was full reports when it has room; the order of accepted messages is kept.
func TestWritable(t *testing.T) {
	onFlavors(t, func(r *rig) {
		stuckServer(r, reconnect.Config{Queue: 4})
		for tag := range uint64(7) {
			r.send(tag, string(rune('a'+tag)))
		}
		if f := actortest.Next[*reconnect.Refused](r.owner); f.Tag != 6 || !is(f, rdma.ErrQueueFull) {
			t.Errorf("%+v", f)
		}
		r.hears("a", "b", "c", "d", "e", "f")
		for {
			if _, ok := actortest.Next[any](r.owner).(*rdma.Writable); ok {
				break
			}
		}
	})
}

// Without credits no message is known to have arrived: a sent message is Unknown immediately, and
// is not kept.
func TestForeignPeer(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve(rdma.IDConfig{Raw: true})
		r.spawn(reconnect.Config{})
		r.accept()
		r.sendTwice(1, "one")
		if s := actortest.Next[*reconnect.Settled](r.owner); !slices.Equal(s.Fates, fates(reconnect.Unknown, false, 1)) {
			t.Errorf("%+v", s)
		}
		r.hears("one")
		if c := r.finish(); c.Err != nil || c.Counts != (reconnect.Counts{Unknown: 1}) {
			t.Errorf("%+v", c)
		}
	})
}

// Close waits until the peer has consumed everything; later messages are refused.
func TestCloseDrains(t *testing.T) {
	onFlavors(t, func(r *rig) {
		stuckServer(r, reconnect.Config{})
		for tag := range uint64(5) {
			r.send(tag, string(rune('a'+tag)))
		}
		r.owner.Send(r.link, &rdma.Close{Timeout: 10 * time.Second})
		r.send(9, "late")
		if f := actortest.Next[*reconnect.Refused](r.owner); f.Tag != 9 || !is(f, reconnect.ErrClosing) {
			t.Errorf("%+v", f)
		}
		r.hears("a", "b", "c", "d", "e")
		r.ended()
		all, _ := r.untilDown()
		if c := actortest.Next[*reconnect.Closed](r.owner); c.Err != nil || c.Counts != (reconnect.Counts{Delivered: 5}) {
			t.Errorf("%+v", c)
		}
		if !slices.Equal(all, fates(reconnect.Delivered, false, 0, 1, 2, 3, 4)) {
			t.Errorf("the fates: %+v", all)
		}
	})
}

// If the peer never consumes anything the wait ends, and every message gets its true fate.
func TestDrainDeadline(t *testing.T) {
	for name, end := range map[string]any{
		"close": &rdma.Close{Timeout: 3 * time.Second}, "drain": &reconnect.Drain{Timeout: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				stuckServer(r, reconnect.Config{})
				for tag := range uint64(4) {
					r.send(tag, "x")
				}
				r.Wait()
				begin := r.Elapsed()
				r.owner.Send(r.link, end)
				down := actortest.Next[*reconnect.Down](r.owner)
				want := slices.Concat(fates(reconnect.Unknown, false, 0, 1), fates(reconnect.Unsent, false, 2, 3))
				if !slices.Equal(down.Fates, want) || !is(down.Err, unix.ETIMEDOUT) || !down.NextTry.IsZero() {
					t.Errorf("%+v, want %+v", down, want)
				}
				if c := actortest.Next[*reconnect.Closed](r.owner); !is(c.Err, unix.ETIMEDOUT) || r.Elapsed()-begin != 3*time.Second {
					t.Errorf("%+v after %v", c, r.Elapsed()-begin)
				}
			})
		})
	}
}

// Drain connects again for waiting messages; Close does not.
func TestDrainRedials(t *testing.T) {
	onFlavors(t, func(r *rig) {
		conn := stuckServer(r, reconnect.Config{})
		for tag := range uint64(4) {
			r.send(tag, string(rune('a'+tag)))
		}
		r.owner.Send(r.link, &reconnect.Drain{Timeout: 20 * time.Second})
		r.hears("a", "b")
		r.Disconnect(conn)
		_, down := r.untilDown()
		if down.Waiting != 1 || down.NextTry.IsZero() {
			t.Fatalf("%+v", down)
		}
		r.ended()
		r.accept()
		r.hears("d")
		r.ended()
		for {
			if c, ok := actortest.Next[any](r.owner).(*reconnect.Closed); ok {
				if c.Err != nil || c.Counts.Unsent != 0 {
					t.Errorf("%+v", c)
				}
				break
			}
		}
	})
}
