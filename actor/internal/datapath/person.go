package datapath

import "github.com/rdmactor/rdmactor/actor/internal/limits"

// What all connections of one person occupy of a loop's memory to receive into is bounded, if the
// user says so. What a connection's peer may send at once is promised to it in the hello, before
// anybody knows who it is. So that is what a connection counts with, from when it is known whose it
// is:
//
//   - Floor: one connection, and one large message.
//   - Bound: as many bytes as Belong was called with last.
//   - Excess: a further connection is refused, receives stay small (resize.go), and a large message
//     waits at its sender, and is in nobody's way (memory.Claimant's Fair). It is looked at again
//     whenever less counts.
//
// Stopping a connection in the middle would not do: what makes its owner consume may be behind the
// next message.

// occupied is what one occupies of a loop's memory. Loop goroutine. It is no fairshare.Shares: each
// person has a bound, and no share of the others'.
type occupied struct {
	who      limits.Person
	most     int // bytes; 0: any number
	Receives int // bytes promised to connections, and retained of those that have ended
	Large    int // bytes of large messages, being read or here
}

// Belong notes whose the connection is, and what all of who's may occupy, in bytes; 0: any amount.
// Not ok: there is no room for this one.
func (c *Conn) Belong(who limits.Person, most int) (ok bool) {
	o := c.l.Persons[who]
	if o == nil {
		o = &occupied{who: who}
	}
	o.most = most
	c.l.RecvBudget.Look() // it may be more than before
	n := c.promise()
	if most > 0 && o.Receives > 0 && o.Receives+n > most {
		return false
	}
	o.Receives += n
	c.of, c.promised, c.l.Persons[who] = o, n, o
	return true
}

// promises has the connection count with n bytes of receives, when their size changes. Not ok:
// there is no room for more.
func (c *Conn) promises(n int) (ok bool) {
	o, more := c.of, n-c.promised
	switch {
	case o == nil:
		return true
	case more > 0 && o.most > 0 && o.Receives+more > o.most:
		return false
	}
	o.Receives += more
	c.promised = n
	if more < 0 {
		c.l.RecvBudget.Look()
	}
	return true
}

// promise is how many bytes of receives the peer's messages may fill before the owner has consumed
// any.
func (c *Conn) promise() int {
	n := c.terms.Credits
	if c.pool.srq == nil {
		n = c.terms.receives()
	}
	return n * c.pool.Arena.Size()
}

// vacate ends a connection's part: from now on only what the owner has of it counts.
func (c *Conn) vacate() {
	if c.of != nil {
		c.of.Receives += c.recv.bytes - c.promised
		c.l.RecvBudget.Look()
		c.of.forget(c.l)
	}
}

// lets reports whether a large message may take n bytes.
func (o *occupied) lets(n int) bool {
	return o == nil || o.most <= 0 || o.Large == 0 || o.Receives+o.Large+n <= o.most
}

// take counts n bytes of a large message.
func (o *occupied) take(n int) {
	if o != nil {
		o.Large += n
	}
}

// gave takes back n bytes of a message of c's.
func (o *occupied) gave(c *Conn, n int, large bool) {
	switch {
	case o == nil:
		return
	case large:
		o.Large -= n
	case c.state == connReleased:
		o.Receives -= n
		c.l.RecvBudget.Look()
	}
	o.forget(c.l)
}

// forget forgets it if it is nothing any more.
func (o *occupied) forget(l *Loop) {
	if o.Receives == 0 && o.Large == 0 {
		delete(l.Persons, o.who)
	}
}
