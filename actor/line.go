package actor

import "github.com/rdmactor/rdmactor/actor/internal/datapath"

// Line is the sending half of a connection as an OnLoop owner on the connection's own loop may
// have it: without a mailbox between them, so that the owner knows of each message whether the
// device has it. It is for actors that stand between connections and their users (package
// reconnect). Its methods are called in the owner's Receive, and not while it is being told
// something by the very connection, Writable excepted. A Line may be kept beyond the connection's
// end: its counts stay what they were.
type Line struct{ c *datapath.Conn }

// Post hands s to the device, if device and peer have room for it now; else s stays the caller's,
// and Writable comes when trying again may help, or the connection ends. s is one that was Taken,
// or a Copy, and not larger than Established.MaxMessage. What was posted is the connection's, and
// of its fate Posted and Delivered tell.
func (l *Line) Post(s *Send) (posted bool) {
	s.sender = nil
	return l.c.TryPost(s.out.As(s.Notify, s.Renew))
}

// Awake asks for a Writable at the next news of the device or of the peer.
func (l *Line) Awake() { l.c.Awake() }

// Posted is how many messages the device was handed.
func (l *Line) Posted() uint64 { return l.c.Posted() }

// Delivered is how many of them the peer is known to have consumed: the first ones.
func (l *Line) Delivered() uint64 { return l.c.Delivered() }

// Acknowledged reports whether the peer tells what it has consumed. A raw connection's does not.
func (l *Line) Acknowledged() bool { return l.c.Acknowledged() }

// Take makes s the caller's who will Post it: it cannot be sent otherwise any more. Not ok: it was
// not made by NewSend, or was sent before. Any goroutine that owns s.
func (s *Send) Take() (ok bool) {
	if !s.usable() {
		return false
	}
	s.out.Take()
	return true
}

// Copy is another Send of the same bytes, to be sent once more. s must not have been posted. Any
// goroutine that owns s.
func (s *Send) Copy() *Send { return NewSend(s.out.Bytes()) }
