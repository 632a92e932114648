package mailbox

import (
	"runtime"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Executor is where actors run: a *Loop, or *Goroutines.
type Executor interface {
	// schedule has r.Run called until it has no more. Any goroutine. It is not called again for the
	// same r before that.
	schedule(r eventloop.Runnable)
	// turned is called on the consumer's goroutine when an actor has had its turn.
	turned()
	// Over reports whether the executor has ended: its actors can still be stopped, but receive
	// nothing more. Any goroutine.
	Over() bool
}

// offLoopBudget is how many messages an actor off the loops takes before it offers its processor to
// others; Proto.Actor's default.
const offLoopBudget = 300

// Goroutines is the executor of actors that may block: one goroutine per burst of messages.
type Goroutines struct {
	// Loops are those that yield before they sleep when such an actor was woken. Set before use.
	Loops []*Loop
}

func (g *Goroutines) schedule(r eventloop.Runnable) {
	for _, l := range g.Loops {
		if !l.handoff.Load() {
			l.handoff.Store(true)
		}
	}
	go exhaust(r)
}

// exhaust runs r until it has no more.
func exhaust(r eventloop.Runnable) {
	for r.Run(offLoopBudget) {
		runtime.Gosched()
	}
}

func (g *Goroutines) turned() {}

// Over reports false: goroutines do not end.
func (g *Goroutines) Over() bool { return false }

// Option has an actor run where it is chosen to at its spawn. It takes the place of a mailbox and a
// dispatcher in the actor's Props. Registry.Undone finds out that a WithMailbox behind it has
// replaced the mailbox.
func Option(where func() Executor, c *Config) actor.PropsOption {
	return func(p *actor.Props) {
		p.Configure(
			actor.WithMailbox(func() actor.Mailbox { return New(where(), c) }),
			actor.WithOnInit(func(ctx actor.Context) { RegistryOf(ctx.ActorSystem()).expect(ctx) }),
		)
	}
}
