package mailbox

import (
	"time"

	"github.com/rdmactor/rdmactor/internal/sched"
)

// After sends msg to the calling actor itself, not before d has passed; 0 or less means soon,
// never inside the call. On a loop it is the event loop's timer and clock, elsewhere
// time.AfterFunc. It is called in Receive, and so is stop. An actor that has stopped by then gets
// nothing, nor does a later one of its name.
func After(at Place, d time.Duration, msg any) (stop func()) {
	m := Of(at)
	if m != nil && m.Loop() != nil {
		t := m.Loop().el.AfterFunc(d, func() {
			if !m.closed {
				m.PostUserMessage(msg)
			}
		})
		return func() { t.Stop() }
	}
	sys, self := at.ActorSystem(), at.Self()
	process, _ := sys.ProcessRegistry.GetLocal(self.Id)
	var s *sched.Scheduler
	if m != nil {
		if g, ok := m.exec.(*Goroutines); ok {
			s = g.Scheduler
		}
	}
	t := s.AfterFunc(d, func() {
		switch p, ok := sys.ProcessRegistry.GetLocal(self.Id); {
		case !ok || p != process: // stopped; the name may have a new owner
		case msg == nil: // Proto.Actor's mailbox would spin forever
			sys.DeadLetter.SendUserMessage(self, nil)
		default:
			p.SendUserMessage(self, msg)
		}
	})
	return func() { t.Stop() }
}
