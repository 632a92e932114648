package relisten

// Receives sends the listener's actor a message, as its identifier does.
func (l *Listener) Receives(m any) { l.rt.System().Root.Send(l.pid, m) }
