package datapath

import "github.com/rdmactor/rdmactor/actor/internal/limits"

// The memory of a loop that the connections of one person receive into is bounded, if the user sets
// a bound. The hello promises a peer how much it may send without waiting, before the peer is
// known. So a connection counts with that much, from when its person is known:
//
//   - Floor: one connection, and one large message.
//   - Bound: the bytes that Belong was called with last.
//   - Excess: a further connection is refused, receives stay small (resize.go), and a large message
//     waits at its sender, where it is in no other connection's way (memory.Claimant's Fair). It is
//     tried again whenever less counts.
//
// To stop a connection in the middle is no alternative: the message that makes its owner consume
// may be behind the next one.

// occupied is the part of a loop's memory that one person occupies. Loop goroutine. It is no
// fairshare.Shares: each person has a bound, and no share of the others'.
type occupied struct {
	who      limits.Person
	most     int // bytes; 0: any number
	Receives int // bytes promised to connections, and retained of those that have ended
	Large    int // bytes of large messages, being read or here
}

// membership is a connection's part of its person's account. Other code only reads its fields. The
// zero value is that of a connection whose person is unknown, or not bounded.
type membership struct {
	of       *occupied // nil: unknown
	promised int       // bytes of receives that the connection counts with
}

// joinPerson makes the connection one of who's, whose connections may occupy most bytes, and
// promises it n bytes of receives. Not ok: there is no room for this one.
func (m *membership) joinPerson(l *Loop, who limits.Person, most, n int) (ok bool) {
	o := l.Persons[who]
	if o == nil {
		o = &occupied{who: who}
	}
	o.most = most
	l.RecvBudget.Look() // it may be more than before
	if most > 0 && o.Receives > 0 && o.Receives+n > most {
		return false
	}
	o.Receives += n
	m.of, m.promised, l.Persons[who] = o, n, o
	return true
}

// setPromise makes the connection count with n bytes of receives, when their size changes. Not ok:
// there is no room for more.
func (m *membership) setPromise(l *Loop, n int) (ok bool) {
	o, more := m.of, n-m.promised
	switch {
	case o == nil:
		return true
	case more > 0 && o.most > 0 && o.Receives+more > o.most:
		return false
	}
	o.Receives += more
	m.promised = n
	if more < 0 {
		l.RecvBudget.Look()
	}
	return true
}

// endPromise ends the promise. From then on only the held bytes, which the owner has, count.
func (m *membership) endPromise(l *Loop, held int) {
	if m.of != nil {
		m.of.Receives += held - m.promised
		l.RecvBudget.Look()
		m.of.removeIfEmpty(l)
	}
}

// hasRoomFor reports whether a large message may take n bytes.
func (m *membership) hasRoomFor(n int) bool {
	o := m.of
	return o == nil || o.most <= 0 || o.Large == 0 || o.Receives+o.Large+n <= o.most
}

// takeLarge counts n bytes of a large message.
func (m *membership) takeLarge(n int) {
	if m.of != nil {
		m.of.Large += n
	}
}

// returnLarge counts n bytes of a large message that was consumed.
func (m *membership) returnLarge(l *Loop, n int) {
	if m.of != nil {
		m.of.Large -= n
		m.of.removeIfEmpty(l)
	}
}

// returnReceive counts n bytes of a consumed message. left: the connection has left.
func (m *membership) returnReceive(l *Loop, n int, left bool) {
	if m.of == nil {
		return
	}
	if left {
		m.of.Receives -= n
		l.RecvBudget.Look()
	}
	m.of.removeIfEmpty(l)
}

// removeIfEmpty removes an account that is empty.
func (o *occupied) removeIfEmpty(l *Loop) {
	if o.Receives == 0 && o.Large == 0 {
		delete(l.Persons, o.who)
	}
}

// Belong makes the connection one of who's, whose connections may occupy most bytes; 0: any amount.
// Not ok: there is no room for this one.
func (c *Conn) Belong(who limits.Person, most int) (ok bool) {
	n := c.terms.Credits
	if c.In.pool.srq == nil {
		n = c.terms.receiveCount()
	}
	return c.In.person.joinPerson(c.l, who, most, n*c.In.pool.Arena.Size())
}
