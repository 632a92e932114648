package eventloop

// postFunc makes a posted function a Runnable; a func value fits into an interface without
// allocating.
type postFunc func()

func (f postFunc) Run(int) bool {
	f()
	return false
}

func (f postFunc) identifyCallback() (Holder, any) { return Holder{"post", functionName(f)}, nil }

// Post queues fn to be run on the loop, in the order of the Post and Schedule calls. Any goroutine
// may call it, including the loop's; it never blocks. The queue is not bounded: a caller that posts
// for each input of a peer must limit that itself. It returns ErrClosed after a call of Shutdown;
// work accepted before is run.
func (l *Loop) Post(fn func()) error {
	q := &l.queue
	q.mu.Lock()
	if q.closing {
		q.mu.Unlock()
		return l.opError("post", -1, ErrClosed)
	}
	q.pushLocked(postFunc(fn))
	q.posts++
	q.mu.Unlock()
	l.wakeIfAsleep()
	return nil
}

// Schedule queues r to be run on the loop. Any goroutine may call it, including the loop's; it
// neither allocates nor blocks. The caller guarantees, with its own flag, that it schedules r at
// most once until r's Run begins. Schedule still works during Shutdown, so that actors can finish.
// nil means that r will run, or is counted as undone by a Shutdown that ran out of time. ErrClosed
// means that the loop has ended, or has no work left after a call of Shutdown.
func (l *Loop) Schedule(r Runnable) error {
	q := &l.queue
	q.mu.Lock()
	if q.ended {
		q.mu.Unlock()
		return l.opError("schedule", -1, ErrClosed)
	}
	q.pushLocked(r)
	q.mu.Unlock()
	l.wakeIfAsleep()
	return nil
}

// Defer makes r run at the end of this turn, after the queued work and before the loop waits.
// Devices use it to write all output of a turn together. It does not allocate. Work that is
// deferred in that phase, and an r whose Run returns more, runs in the same phase for up to 8
// rounds. The rest runs in the next turn, which does not wait. The caller guarantees that r is
// deferred at most once until its Run begins. Loop goroutine.
func (l *Loop) Defer(r Runnable) {
	l.checkGoroutine()
	l.deferred.next = append(l.deferred.next, r)
	if l.host.embedded != nil && !l.life.inTurn {
		l.wakeIfAsleep()
	}
}
