package core

import "time"

// A message that finds no receive, where the owner of the shared receive queue is asked for one
// (RecvSource.Waits), is not the peer's fault: the owner has no memory now. So it waits where it
// is: its header has been read, what was read behind it is kept, and nothing more is to be read
// from the socket until Resume finds a receive. TCP then stops the peer. Neither silence nor set-up
// is timed meanwhile: it is this side that does not read.
//
// Pause has the next message wait although there are receives, because the owner wants them for
// others.
type waiting struct {
	message bool // one waits
	paused  bool // the owner wants the next one to
	deaf    bool // we have said the last, and what comes has nobody who would take it
}

// kept is what was read behind a message that waits.
type kept struct {
	b    []byte
	from int // what was consumed
}

// Waiting is true while a message waits for a receive: do not read from the socket, but call Resume.
func (c *Conn) Waiting() bool { return c.rx.wait.message }

// Kept is how many bytes a connection has that were read and wait: nobody else can use them.
func (c *Conn) Kept() int {
	if c.rx.kept == nil {
		return 0
	}
	return cap(c.rx.kept.b)
}

// Pause has messages wait, from the next one on, as if there were no receive, or has them come
// again: then call Resume. A message that has begun is finished, and Reads, Writes and what is sent
// go on as far as they are not behind a message that waits.
func (c *Conn) Pause(on bool) { c.rx.wait.paused = on }

// Resume goes on with the message that waits, if there is a receive now. It may wait again, or the
// next one.
func (c *Conn) Resume(now time.Time) {
	w := &c.rx.wait
	if !w.message || c.closeNow || w.paused {
		return
	}
	w.message = false
	if c.head(now); w.message {
		return
	}
	c.rx.heardAt = now
	k := c.rx.kept
	if k == nil {
		return
	}
	for k.from < len(k.b) && !w.message && !c.closeNow {
		b := k.b[k.from:]
		k.from += len(b) - len(c.inputSome(now, b))
	}
	switch {
	case c.rx.kept != k: // the connection has ended
	case k.from == len(k.b):
		c.rx.kept = nil
	case k.from > len(k.b)/2: // what was consumed is not kept for long
		c.rx.kept = &kept{b: append([]byte(nil), k.b[k.from:]...)}
	}
}

// keep adds what was read behind the message that waits.
func (r *rx) keep(b []byte) {
	if r.kept == nil {
		r.kept = new(kept)
	}
	r.kept.b = append(r.kept.b, b...)
}

// mustWait reports whether the message that now begins has to wait. Asking for a receive may end
// the connection.
func (c *Conn) mustWait() (wait, ready bool) {
	w := &c.rx.wait
	ready = !w.paused && c.recvReady()
	if w.paused { // perhaps by the owner that was asked
		return true, false
	}
	return !ready && c.cfg.SRQ != nil && c.cfg.SRQ.Waits(), ready
}

// letWait has the message wait whose header has just come. After Disconnect nobody will make room
// any more: what comes is dropped, so that the peer's FIN is seen.
func (c *Conn) letWait() {
	if c.state == stFinishing {
		c.deafen()
		return
	}
	c.rx.wait.message = true
	c.heard()
}

// deafen drops what comes up to the peer's FIN.
func (c *Conn) deafen() {
	c.rx.wait, c.rx.kept = waiting{deaf: true}, nil
	c.rx.have, c.rx.need, c.rx.phase, c.rx.tag = 0, headLen, phHead, tagged{}
}
