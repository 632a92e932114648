package actor

import "github.com/rdmactor/rdmactor/actor/internal/overwrite"

// identLife is how far an identifier is on its way. It only goes forward.
//
//	alive ──► ending ──► gone ──► closed
//	  └───────────────────▲
//
// From alive straight to gone go those that could not be made, and those that the device has closed
// by itself. Two facts are apart from this, because they may come before its steps or behind them:
// whether the owner has heard of the connection's end (ident.endTold), which a Manual owner hears
// while the identifier is alive and others when it is ending; and the goodbye that the next step
// waits for (ident.parting). A connection has its own lifetime: connState.
type identLife uint8

const (
	// identAlive takes commands.
	identAlive identLife = iota
	// identEnding is being destroyed: commands are answered with ENOENT, what ends it with Closed.
	identEnding
	// identGone has nothing in the device that its actor waits for: it was given back, could not
	// be made, or is left to the loop (loop.orphans).
	identGone
	// identClosed has reported Closed, the last event. Who sends now meets a stopped actor.
	identClosed
)

func (s identLife) String() string {
	return [...]string{"alive", "ending", "gone", "closed"}[s]
}

// setLife takes the next step. Builds that look for misuse end the process over a step back.
func (it *ident) setLife(to identLife) {
	if overwrite.On && to <= it.life {
		panic("rdma: an identifier that is " + it.life.String() + " cannot become " + to.String())
	}
	it.life = to
}

// ending reports whether it is being destroyed, or was.
func (it *ident) ending() bool { return it.life != identAlive }

// gone reports whether the device has nothing of it that its actor waits for.
func (it *ident) gone() bool { return it.life >= identGone }
