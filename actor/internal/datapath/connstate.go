package datapath

import "github.com/rdmactor/rdmactor/actor/internal/overwrite"

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

// Connecting reports whether the owner has not been notified of Established yet.
func (c *Conn) Connecting() bool { return c.state == connConnecting }

// Opened reports whether it was open at any time.
func (c *Conn) Opened() bool { return c.state != connConnecting && c.state != connAborted }

// Flows reports whether messages are delivered.
func (c *Conn) Flows() bool { return c.state >= connOpen && c.state < connOver }

// mayPost reports whether queued messages may be posted.
func (c *Conn) mayPost() bool { return c.Flows() && !c.end.hasGoodbye() }

// maySubmit reports whether the owner may submit messages.
func (c *Conn) maySubmit() bool { return c.state == connOpen && !c.end.hasGoodbye() }

// Closing reports whether Close waits for the peer, or has.
func (c *Conn) Closing() bool { return c.state == connDraining || c.state == connDrained }

// Over reports whether the connection sends and delivers nothing more.
func (c *Conn) Over() bool { return c.state >= connOver }
