package datapath

import (
	"container/heap"
	"math"
)

// pausedConns is the connections that are paused and go on when there is enough memory: a heap,
// because there may be thousands, and each message that is given back may be what one of them waits
// for. First is who wants least.
type pausedConns []*Conn

func (p pausedConns) Len() int           { return len(p) }
func (p pausedConns) Less(i, j int) bool { return p[i].recv.wants < p[j].recv.wants }

func (p pausedConns) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].recv.at, p[j].recv.at = i, j
}

// Push adds a *conn at the end.
func (p *pausedConns) Push(c any) {
	c.(*Conn).recv.at = len(*p)
	*p = append(*p, c.(*Conn))
}

// Pop takes the last.
func (p *pausedConns) Pop() any {
	last := len(*p) - 1
	c := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	return c
}

// wants is how much room there has to be for c, which is paused, to go on: for more than one
// message. Not ever: memory alone does not help it, and again is called when something else has
// happened.
func (s *shares) wants(c *Conn) (bytes int, ever bool) {
	r := &c.recv
	must := c.mustReceive()
	switch {
	case !c.Flows():
		return 0, false
	case r.bytes == 0:
		return math.MinInt, true
	case c.mode != ModeMessages && (must && r.messages >= c.window(true) || !must && r.messages > c.window(false)/2):
		return 0, false
	case must:
		return 1, true
	}
	return r.bytes + r.bytes/3, true
}

// next reports whether there is room for a connection that is paused.
func (s *shares) next() bool { return len(s.paused) > 0 && s.paused[0].recv.wants <= s.room() }

// again has c go on if it is paused and may. Otherwise it waits in its place.
func (s *shares) again(c *Conn) {
	r := &c.recv
	if !r.paused {
		return
	}
	wants, ever := s.wants(c)
	switch {
	case !ever:
		s.unlist(c)
	case wants <= s.room():
		s.resume(c)
	case r.listed:
		r.wants = wants
		heap.Fix(&s.paused, r.at)
	default:
		r.wants, r.listed = wants, true
		heap.Push(&s.paused, c)
	}
}

// pause has c's messages wait at their sender. It was just found that it may not receive another.
func (s *shares) pause(c *Conn) {
	r := &c.recv
	if r.paused {
		return
	}
	r.paused = true
	r.qp.Pause(true)
	if wants, ever := s.wants(c); ever {
		r.wants, r.listed = wants, true
		heap.Push(&s.paused, c)
	}
}

// resume has c's messages come again.
func (s *shares) resume(c *Conn) {
	s.forget(c)
	if !c.Over() {
		c.recv.qp.Pause(false)
	}
}

// forget is told that c ends, too.
func (s *shares) forget(c *Conn) {
	c.recv.paused = false
	s.unlist(c)
}

func (s *shares) unlist(c *Conn) {
	if c.recv.listed {
		c.recv.listed = false
		heap.Remove(&s.paused, c.recv.at)
	}
}
