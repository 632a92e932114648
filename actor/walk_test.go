package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/states"
)

// many makes identifiers on the first loop.
func (w *world) many(n int) {
	w.Helper()
	for range n {
		w.rt.CreateID(nil, IDConfig{})
	}
	settle()
}

// A loop looks at its identifiers over several turns, in which it does other things, too.
func TestInspectYields(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		const turns = 6
		w.many(turns * inspectedAtOnce)
		el := w.rt.loops[0].el
		before := el.Stats().Turns
		infos := w.rt.Inspect()
		if n := el.Stats().Turns - before; n < turns-1 || n > 3*turns {
			w.Errorf("%d identifiers took %d turns, want some %d", len(infos), n, turns)
		}
		if len(infos) != turns*inspectedAtOnce {
			w.Errorf("%d identifiers", len(infos))
		}
		for i := 1; i < len(infos); i++ {
			if infos[i-1].ID >= infos[i].ID {
				w.Fatalf("identifier %d after %d", infos[i].ID, infos[i-1].ID)
			}
		}
	})
}

// What ends between the turns is not reported, and nothing is reported twice.
func TestEndedBetweenTurns(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		w.many(10)
		l := w.rt.loops[0]
		gone, seen := make(chan *actor.PID, 1), make(chan []IDInfo, 1)
		_ = l.el.Post(func() {
			walk := l.newWalk()
			walk.inspectNext(4)
			victim := walk.left[2]
			gone <- victim.pid
			w.sys.Root.Send(victim.pid, &DestroyID{})
			w.rt.CreateID(nil, IDConfig{})
			l.el.AfterFunc(0, func() {
				l.el.AfterFunc(0, func() {
					walk.inspectNext(100)
					seen <- walk.infos
				})
			})
		})
		victim, infos := <-gone, <-seen
		counted := make(map[string]int)
		for _, i := range infos {
			counted[i.PID.Id]++
		}
		if len(infos) != 9 || len(counted) != 9 || counted[victim.Id] != 0 {
			w.Errorf("%d reports of %d identifiers, %d of the one that has ended", len(infos), len(counted), counted[victim.Id])
		}
	})
}

// However many ask while a loop is at an answer, it answers once more, for all of them.
func TestAnswersAreShared(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		var q inquiry[int]
		l, asked := w.rt.loops[0], 0
		ask := func(answer func(int)) {
			asked++
			n := asked
			l.el.AfterFunc(time.Second, func() { answer(n) })
		}
		first := q.askLoop(l.el, ask)
		var second <-chan struct{}
		for range 9 {
			time.Sleep(100 * time.Millisecond)
			if second = q.askLoop(l.el, ask); second == first {
				w.Error("who asks during an answer gets that one, which may be of before")
			}
		}
		<-first
		if n := q.lastAnswer(); n != 1 {
			w.Errorf("answer %d", n)
		}
		<-second // a later question may be too late for it
		time.Sleep(time.Minute)
		if n := q.lastAnswer(); n != 2 || asked != 2 {
			w.Errorf("the last of %d answers is %d, want 2", asked, n)
		}
	})
}
