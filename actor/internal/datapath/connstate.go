package datapath

import "github.com/rdmactor/rdmactor/actor/internal/overwrite"

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
func (c *Conn) setState(to connState) {
	if overwrite.On && !c.state.leadsTo(to) {
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

// Connecting reports whether the owner has not heard of Established yet.
func (c *Conn) Connecting() bool { return c.state == connConnecting }

// Opened reports whether it was open at any time.
func (c *Conn) Opened() bool { return c.state != connConnecting && c.state != connAborted }

// Flows reports whether messages are delivered.
func (c *Conn) Flows() bool { return c.state >= connOpen && c.state < connOver }

// sends reports whether what waits may be handed to the device.
func (c *Conn) sends() bool { return c.Flows() && c.parting == staying }

// taking reports whether the owner's messages are taken.
func (c *Conn) taking() bool { return c.state == connOpen && c.parting == staying }

// Closing reports whether Close waits for the peer, or has.
func (c *Conn) Closing() bool { return c.state == connDraining || c.state == connDrained }

// Over reports whether nothing is sent or delivered any more.
func (c *Conn) Over() bool { return c.state >= connOver }
