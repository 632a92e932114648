package inbox

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Every kind of actor gets all messages unchanged and in order.
func TestDeliver(t *testing.T) {
	inHomes(t, Config{}, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		r.deliver(a.pid, 10, notes(1)...)
		a.wantNotes(r, "the first", 1)
		r.deliver(a.pid, 10, notes(10)[1:]...)
		a.wantNotes(r, "and more", 10)
		if len(r.refusals()) != 0 || a.touches != 0 {
			r.t.Errorf("%d refused, %d Touches for a few messages", len(r.refusals()), a.touches)
		}
	})
}

// A long stream arrives whole and in order, whatever the window.
func TestDeliverMany(t *testing.T) {
	inHomes(t, Config{Window: 4 << 10}, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		all := notes(5000)
		for len(all) > 0 {
			n := min(len(all), 100)
			r.deliver(a.pid, 100, all[:n]...)
			all = all[n:]
		}
		r.Advance(soon)
		a.wantNotes(r, "everything", 5000)
		if len(r.refusals()) != 0 {
			r.t.Errorf("%d refused", len(r.refusals()))
		}
	})
}

// A future gets its answer immediately.
func TestDeliverToAFuture(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		f := actor.NewFuture(r.System(), time.Second)
		r.deliver(f.PID(), 10, &note{7})
		v, err := f.Result()
		if n, ok := v.(*note); err != nil || !ok || n.n != 7 {
			r.t.Errorf("the future has %v, %v", v, err)
		}
	})
}

// A message to an unknown name is a dead letter, and its sender is notified.
func TestDeliverToNobody(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		f := actor.NewFuture(r.System(), time.Minute)
		r.deliver(actor.NewPID("", "nobody"), 10, &actor.MessageEnvelope{Message: &note{}, Sender: f.PID()})
		if _, err := f.Result(); !errors.Is(err, actor.ErrDeadLetter) || r.Elapsed() >= time.Minute {
			r.t.Errorf("after %v the future has %v", r.Elapsed(), err)
		}
		if len(r.refusals()) != 0 {
			r.t.Errorf("refused: %v", r.refusals())
		}
	})
}

// Each RDMA message finds the actor that has the name now, and a sender hears if none has it.
func TestEachRDMAMessageLooksForItsTarget(t *testing.T) {
	inHomes(t, Config{}, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		come := func(msg any) {
			r.do(func(in *Inbox) {
				in.Begin()
				in.Deliver(a.pid, msg, 10, nil)
			})
		}
		come(&note{0})
		a.wantNotes(r, "the first", 1)
		r.System().Root.Stop(a.pid)
		r.Advance(soon)
		f := actor.NewFuture(r.System(), time.Minute)
		come(&actor.MessageEnvelope{Message: &note{1}, Sender: f.PID()})
		if _, err := f.Result(); !errors.Is(err, actor.ErrDeadLetter) {
			r.t.Errorf("the future has %v", err)
		}
		b := r.spawnTarget("a", opts...)
		come(&note{0})
		b.wantNotes(r, "another one of the name", 1)
		a.wantNotes(r, "the one that has ended", 1)
	})
}

// A nil message would make Proto.Actor's mailbox spin forever.
func TestDeliverNothing(t *testing.T) {
	inRig(t, Config{}, func(r *rig) {
		a := r.spawnTarget("a")
		r.deliver(a.pid, 10, nil, &actor.MessageEnvelope{})
		if len(r.refusals()) != 2 || !errors.Is(r.refusals()[0].why, ErrNothing) || !errors.Is(r.refusals()[1].why, ErrNothing) {
			r.t.Errorf("refused: %v", r.refusals())
		}
	})
}

// A blocked target has a window of messages; the others go on, and it gets the rest afterwards.
func TestABlockedTargetWaitsAlone(t *testing.T) {
	const window, size = 8 << 10, 128
	inHomes(t, Config{Window: window}, func(r *rig, opts []actor.PropsOption) {
		a, b := r.spawnTarget("a", opts...), r.spawnTarget("b", opts...)
		a.suspend()
		const n = 200
		for _, m := range notes(n) {
			r.do(func(in *Inbox) {
				in.Deliver(a.pid, m, size, nil)
				in.Deliver(b.pid, m, size, nil)
			})
		}
		r.Advance(soon)
		b.wantNotes(r, "beside a blocked one", n)
		a.wantNotes(r, "blocked", 0)
		r.do(func(in *Inbox) {
			l := in.lines["a"]
			if max := l.route.inFlight(); l.route.off || max <= window {
				return
			}
			r.t.Errorf("%d bytes are in flight", l.route.inFlight())
		})
		a.resume()
		r.Advance(soon)
		a.wantNotes(r, "unblocked", n)
		if len(r.refusals()) != 0 {
			r.t.Errorf("%d refused", len(r.refusals()))
		}
	})
}

// A message that is larger than the window goes alone.
func TestAMessageLargerThanTheWindow(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		r.do(func(in *Inbox) {
			for i, size := range []int{10, 9000, 10, 9000, 9000, 10} {
				in.Deliver(a.pid, &note{i}, size, nil)
			}
		})
		a.wantNotes(r, "without time passing", 6)
	})
}

// Two messages of which the second does not fit beside the first: it follows immediately.
func TestAMessageThatDoesNotFit(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		r.do(func(in *Inbox) {
			in.Deliver(a.pid, &note{0}, 1000, nil)
			in.Deliver(a.pid, &note{1}, 4000, nil)
		})
		a.wantNotes(r, "without time passing", 2)
	})
}

// No message of a peer's reaches the process that gets the answers to Touch.
func TestTheAnswersAreNoTarget(t *testing.T) {
	inRig(t, narrow, func(r *rig) {
		a := r.spawnTarget("a")
		a.suspend()
		r.deliver(a.pid, 1000, notes(8)...)
		r.do(func(in *Inbox) {
			out := len(in.answers.out)
			for id := range uint32(100) {
				in.Deliver(&actor.PID{Id: Name, RequestId: id}, &note{}, 10, nil)
			}
			if n := len(in.answers.out); n != out || out == 0 {
				r.t.Errorf("%d Touches wait, and waited before: %d", n, out)
			}
		})
		if n := len(r.deadLetters()); n != 100 {
			r.t.Errorf("%d dead letters, want 100", n)
		}
	})
}
