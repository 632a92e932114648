package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// After sends msg to the calling actor itself, not before d has passed; 0 or less means soon, never inside the call. For an OnLoop
// actor it is the loop's timer, and the loop's clock (virtual in tests); for every other one time.AfterFunc. It is called in
// Receive, and so is stop, which is the way to change one's mind: after it the message is not sent any more, though it may be
// waiting in the mailbox already. A restarted actor gets the message; one that has stopped by then does not, and there is no dead
// letter either.
func After(ctx actor.Context, d time.Duration, msg any) (stop func()) {
	m := boxOfCaller(ctx)
	if m != nil && m.loop() != nil {
		t := m.loop().el.AfterFunc(d, func() {
			if !m.closed {
				m.PostUserMessage(msg)
			}
		})
		return func() { t.Stop() }
	}
	sys, self := ctx.ActorSystem(), ctx.Self()
	process, _ := sys.ProcessRegistry.GetLocal(self.Id)
	t := time.AfterFunc(d, func() {
		switch p, ok := sys.ProcessRegistry.GetLocal(self.Id); {
		case !ok || p != process: // stopped; the name may have a new owner
		case msg == nil: // Proto.Actor's mailbox would spin for ever
			sys.DeadLetter.SendUserMessage(self, nil)
		default:
			p.SendUserMessage(self, msg)
		}
	})
	return func() { t.Stop() }
}
