package inbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// An actor that is busy with one large message can still be watched and stopped.
func TestSystemMessagesBehindALargeMessage(t *testing.T) {
	inHomes(t, narrow, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		r.deliver(a.pid, 10, &note{0}) // it is known not to be in the middle of its spawn
		a.suspend()
		r.deliver(a.pid, 100*narrow.Window, &note{1})
		r.do(func(in *Inbox) {
			in.DeliverSystem(a.pid, &actor.Watch{Watcher: r.link}, 10)
			in.DeliverSystem(a.pid, &actor.Stop{}, 10)
		})
		if len(r.refusals()) != 0 {
			r.t.Errorf("refused: %+v", r.refusals())
		}
		a.resume()
		r.Advance(soon)
		if _, ok := r.System().ProcessRegistry.GetLocal("a"); ok {
			r.t.Error("it was not stopped")
		}
	})
}

// watchers returns actors of another node.
func watchers(n int) (all []*actor.PID) {
	for i := range n {
		all = append(all, actor.NewPID("elsewhere", fmt.Sprint("watcher", i)))
	}
	return all
}

// An Unwatch is never refused, and is delivered although the inbox is closed: an actor would keep
// its watcher forever.
func TestUnwatchIsNeverRefused(t *testing.T) {
	inHomes(t, Config{Window: 4 << 10, Bytes: 20 << 10}, func(r *rig, opts []actor.PropsOption) {
		a := r.spawnTarget("a", opts...)
		all := watchers(1000)
		for _, w := range all {
			r.do(func(in *Inbox) { in.DeliverSystem(a.pid, &actor.Watch{Watcher: w}, 10) })
		}
		r.do(func(in *Inbox) {
			for _, w := range all {
				in.DeliverSystem(a.pid, &actor.Unwatch{Watcher: w}, 10)
			}
			in.Close()
		})
		r.Advance(time.Minute)
		if n := len(r.refusals()); n != 0 {
			r.t.Errorf("%d were refused", n)
		}
		r.System().Root.Stop(a.pid)
		r.Wait()
		for _, d := range r.deadLetters() {
			r.t.Fatalf("a watcher is left: %T to %v", d.Message, d.PID)
		}
	})
}

// Unwatches that an actor's goroutine has not yet sent are sent also when Patience is over.
func TestUnwatchWhenPatienceIsOver(t *testing.T) {
	inRig(t, small, func(r *rig) {
		gate := make(chan struct{})
		mw := &posted{do: func(msg any) {
			switch msg.(type) {
			case *note, *actor.Unwatch:
				<-gate
			}
		}}
		a := r.spawnTarget("a", actor.WithMailbox(actor.Unbounded(mw)))
		all := watchers(5)
		r.do(func(in *Inbox) {
			for _, w := range all {
				in.DeliverSystem(a.pid, &actor.Watch{Watcher: w}, 10)
			}
			for _, w := range all {
				in.DeliverSystem(a.pid, &actor.Unwatch{Watcher: w}, 10)
			}
			for i := range 20 {
				in.Deliver(a.pid, &note{i}, 1000, nil)
			}
		})
		r.Advance(defaultPatience + time.Second)
		if full, _ := r.isFull(); full || len(r.refusals()) == 0 {
			r.t.Errorf("full: %v, %d refused", full, len(r.refusals()))
		}
		close(gate)
		r.Advance(soon)
		r.System().Root.Stop(a.pid)
		r.Wait()
		for _, d := range r.deadLetters() {
			if _, ok := d.Message.(*actor.Terminated); ok {
				r.t.Fatalf("a watcher is left: %v", d.PID)
			}
		}
	})
}
