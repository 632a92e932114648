package actor

// A callback on a loop that calls runtime.Goexit ends the loop (eventloop.GoexitError): its
// identifiers end with that error, and its actors receive the messages that were sent to them until
// then. The remains wait for Shutdown.
//
// User code may do so again, wherever it is called. So from the first Goexit on, and while an
// identifier ends, actors receive in their own turn only, and what was broken off is done again.

// failAll ends everything on a loop. It is called after each Goexit of a callback.
func (l *loop) failAll(err error) {
	l.failure.Store(&err)
	l.exec.Resume()
	l.askIDs.breakOff()
	l.askRest.breakOff()
	l.notifyLeavers()
	for _, it := range l.inOrder() {
		it.failWithLoop(err)
	}
	if l.el.Post(l.forgetLeavers) != nil { // behind the messages to them
		l.forgetLeavers()
	}
}

// failWithLoop ends an identifier whose loop has ended. The command in progress is answered.
func (it *ident) failWithLoop(err error) {
	it.life.setCause(err)
	it.failCommand()
	if it.isGone() { // its end may have been broken off
		if _, held := it.l.orphans[it.id]; it.conn != nil && !held {
			it.conn.Release()
		}
		it.tenancy.moveOut()
	} else {
		it.destroyWithoutWait(err)
	}
	if it.box.Closed() {
		it.box.PostUserMessage(&lastMessage{})
		return
	}
	it.l.rt.sys.Root.Stop(it.pid)
}
