package actor

// Held counts the messages that owners have received and not given back: retained and not released, or on their way to an actor
// on goroutines. Their connections may have ended. It is collected as Inspect is. Any goroutine.
func (rt *Runtime) Held() (n int) {
	for _, l := range rt.loops {
		if l.el.OnLoop() {
			return l.held()
		}
	}
	for _, l := range rt.loops {
		got := make(chan int, 1)
		if err := l.el.Post(func() { got <- l.held(); l.el.Handoff() }); err != nil {
			continue // it has ended
		}
		n += <-got
	}
	return n
}

// held is the receive buffers that are handed out, without those posted to the device.
func (l *loop) held() (n int) {
	for _, d := range l.devices {
		for _, p := range d.recvs {
			n += p.arena.out - (len(p.posted) - len(p.free))
		}
	}
	return n
}
