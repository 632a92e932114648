package core

// Waiting is true while a message waits for a receive. Meanwhile do not read from the socket. Call
// Resume when there may be a receive.
func (c *Conn) Waiting() bool { return c.rx.wait.message }

// Kept returns how much memory the connection uses for bytes that were read and wait behind the
// message.
func (c *Conn) Kept() int {
	if c.rx.kept == nil {
		return 0
	}
	return cap(c.rx.kept.b)
}

// Pause(true) makes messages wait, beginning with the next one, as if there were no receive.
// Pause(false) ends that; then call Resume. A message that has begun is finished. Reads and Writes
// go on unless they are behind a message that waits. Sending goes on.
func (c *Conn) Pause(on bool) { c.rx.wait.paused = on }

// mustWait reports whether the message that now begins has to wait, and whether there is a receive
// for it. Asking the owner for a receive may end the connection.
func (c *Conn) mustWait() (wait, ready bool) {
	w := &c.rx.wait
	ready = !w.paused && c.recvReady()
	if w.paused { // perhaps by the owner when it was asked
		return true, false
	}
	return !ready && c.cfg.SRQ != nil && c.cfg.SRQ.Waits(), ready
}

// letWait makes the message wait whose header has just arrived. After Disconnect nobody posts
// receives any more, so the input is dropped in order to reach the peer's FIN.
func (c *Conn) letWait() {
	if c.state == stFinishing {
		c.deafen()
		return
	}
	c.rx.wait.message = true
	c.heard()
}

// deafen drops all input up to the peer's FIN.
func (c *Conn) deafen() {
	c.rx.wait, c.rx.kept = waiting{deaf: true}, nil
	c.rx.have, c.rx.need, c.rx.phase, c.rx.tag = 0, headLen, phHead, tagged{}
}
