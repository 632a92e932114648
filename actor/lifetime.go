package actor

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
	// be made, or is left to the loop (loop.lost).
	identGone
	// identClosed has reported Closed, the last event. Who sends now meets a stopped actor.
	identClosed
)

func (s identLife) String() string {
	return [...]string{"alive", "ending", "gone", "closed"}[s]
}

// setLife takes the next step. Builds that look for misuse end the process over a step back.
func (it *ident) setLife(to identLife) {
	if poisoning && to <= it.life {
		panic("rdma: an identifier that is " + it.life.String() + " cannot become " + to.String())
	}
	it.life = to
}

// ending reports whether it is being destroyed, or was.
func (it *ident) ending() bool { return it.life >= identEnding }

// gone reports whether the device has nothing of it that its actor waits for.
func (it *ident) gone() bool { return it.life >= identGone }

// connState is how far a connection's data path is on its way. It only goes forward.
//
//	connecting ──► open ──► draining ──► drained ──► over ──► released
//	     │           └─────────┴──────────────────────▲          ▲
//	     └──────────► aborted ───────────────────────────────────┘
//
// The goodbye (parting) is apart from this: it is said after draining or without, before over or
// behind it. From then on nothing else is sent.
type connState uint8

const (
	// connConnecting has a queue pair. Nothing is sent; what comes waits until the owner has heard
	// of Established.
	connConnecting connState = iota
	// connOpen sends and delivers messages.
	connOpen
	// connDraining has been asked to close, takes no further messages, and waits until the peer has
	// consumed what was taken, or on a raw connection until the device has sent it.
	connDraining
	// connDrained has nothing left to wait for.
	connDrained
	// connOver sends and delivers nothing: what had waited was answered. The queue pair is still
	// there, and what the device has of its memory.
	connOver
	// connAborted is connOver of one that was never open.
	connAborted
	// connReleased has no queue pair any more, nor a claim to its device's memory and queues.
	connReleased
)

func (s connState) String() string {
	return [...]string{"connecting", "open", "draining", "drained", "over", "aborted", "released"}[s]
}

// setState takes the next step. Builds that look for misuse end the process over one that is none.
func (c *conn) setState(to connState) {
	if poisoning && !c.state.leadsTo(to) {
		panic("rdma: a connection that is " + c.state.String() + " cannot become " + to.String())
	}
	c.state = to
}

// leadsTo reports whether the diagram has a way in one step.
func (s connState) leadsTo(to connState) bool {
	switch to {
	case connOpen, connAborted:
		return s == connConnecting
	case connOver:
		return s >= connOpen && s < connOver
	case connReleased:
		return s == connOver || s == connAborted
	}
	return to == s+1
}

// flows reports whether messages are delivered.
func (c *conn) flows() bool { return c.state >= connOpen && c.state < connOver }

// sends reports whether what waits may be handed to the device.
func (c *conn) sends() bool { return c.flows() && c.parting == staying }

// taking reports whether the owner's messages are taken.
func (c *conn) taking() bool { return c.state == connOpen && c.parting == staying }

// closing reports whether Close waits for the peer, or has.
func (c *conn) closing() bool { return c.state == connDraining || c.state == connDrained }

// over reports whether nothing is sent or delivered any more.
func (c *conn) over() bool { return c.state >= connOver }
