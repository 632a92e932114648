package eventloop

// Registration is one fd in a loop. Its methods belong to the loop's goroutine.
type Registration struct {
	l *Loop
	watch
}

// glanceAtLast asks the handler of the last ready fd for new input. After some glances that found
// nothing, the loop polls the kernel instead. Most glances find nothing, so the clock is read only
// on demand.
func (l *Loop) glanceAtLast() (worked bool) {
	g := &l.glancing
	for g.w != nil && g.left > 0 && !l.queue.hasWork() {
		if g.w.removed {
			g.w = nil
			break
		}
		g.left--
		l.time.stale = true
		if l.calls.run(&g.w.look) {
			g.left = 0 // other fds are next
			return true
		}
	}
	return false
}

// Add watches fd, level-triggered, and calls h when it is ready. The fd stays the caller's: Remove
// the registration first, then close it. The error is an *OpError: EBADF (not open), EEXIST
// (registered already), EPERM (cannot be polled), ENOSPC (the user's limit of epoll watches),
// ENOMEM, and the errors of a custom Poller, such as EMFILE and ENFILE; ErrClosed after the end.
// Loop goroutine, or before the loop runs.
func (l *Loop) Add(fd int, interest Events, h Handler) (*Registration, error) {
	l.checkGoroutine()
	if l.life.over.Load() {
		return nil, l.opError("add", fd, ErrClosed)
	}
	r := &Registration{l, watch{fd: fd, interest: interest, handler: h}}
	r.task = fdTask{&r.watch}
	if _, ok := h.(Glancer); ok {
		r.look = glanceTask{&r.watch}
	}
	l.fds.insert(&r.watch)
	if err := l.poller.Add(fd, interest, r.tag); err != nil {
		l.fds.release(&r.watch)
		return nil, l.opError("add", fd, err)
	}
	if old := l.fds.byFD[fd]; old != nil {
		// closed without Remove, its number used again: it must not take the new one's place later
		l.fds.remove(old)
	}
	l.fds.setFD(&r.watch)
	return r, nil
}

// Modify changes the events that the fd is watched for; 0 leaves Hangup and Error. ErrClosed after
// Remove.
func (r *Registration) Modify(interest Events) error {
	l := r.l
	l.checkGoroutine()
	if r.removed || l.life.over.Load() {
		return l.opError("modify", r.fd, ErrClosed)
	}
	if err := l.poller.Modify(r.fd, interest, r.tag); err != nil {
		return l.opError("modify", r.fd, err)
	}
	r.interest = interest
	return nil
}

// Remove ends the registration: the handler is not called again, not even for events of this turn.
// It does so even when it returns an error. The errors EBADF, and ENOENT when the number belongs to
// another file by now, mean that the fd was closed before Remove. If a duplicate of the fd is still
// open, the kernel goes on reporting it, and the loop does not sleep while it is ready: see
// Limitations in the package comment. A second Remove does nothing.
func (r *Registration) Remove() error {
	l := r.l
	l.checkGoroutine()
	if r.removed {
		return nil
	}
	l.fds.remove(&r.watch)
	if l.life.over.Load() {
		return nil // the closed Poller has no watches
	}
	return l.opError("remove", r.fd, l.poller.Remove(r.fd))
}

// dispatchReady delivers a report to the handler it belongs to, if that still exists.
func (l *Loop) dispatchReady(report Ready) {
	w := l.fds.find(report.Tag)
	if w == nil {
		return
	}
	w.ready = report.Events
	l.calls.run(&w.task)
}
