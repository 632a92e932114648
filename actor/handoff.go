package actor

import "github.com/asynkron/protoactor-go/actor"

// Handoff gives the calling OnLoop actor a way to say that it has just woken a goroutine (by a channel, a WaitGroup) that works for it:
// its loop then yields once before it sleeps, so that the goroutine does not wait until Go's scheduler notices. Messages to
// actors need none of it. It is called in Receive, and so is what it returns; off the loops that does nothing.
func Handoff(ctx actor.Context) (woke func()) {
	if m := boxesOf(ctx.ActorSystem()).get(ctx.Self().Id); m != nil && m.loop() != nil {
		return m.loop().el.Handoff
	}
	return func() {}
}
