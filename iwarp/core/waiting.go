package core

// Waiting is true while a message waits for a receive: do not read from the socket, but call
// Resume.
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
