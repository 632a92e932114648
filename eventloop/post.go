package eventloop

// postFunc makes a posted function a Runnable; a func value fits into an interface without
// allocating.
type postFunc func()

func (f postFunc) Run(int) bool {
	f()
	return false
}

func (f postFunc) identify() (Holder, any) { return Holder{"post", functionName(f)}, nil }

// Post queues fn to be run on the loop, in the order of the Post and Schedule calls. Any
// goroutine, the loop's included; it never blocks. The queue has no bound: whoever posts in answer
// to somebody else's input limits that itself. ErrClosed once Shutdown has begun; what was
// accepted before is run.
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
	l.wake()
	return nil
}

// Schedule queues r to be run on the loop. Any goroutine, the loop's included; it neither
// allocates nor blocks. The caller guarantees, with a flag of its own, that it schedules r at most
// once until r's Run begins. Schedule still works during Shutdown, so that actors can finish. nil
// means that r will run, or else that a Shutdown which ran out of time counts it as undone.
// ErrClosed once there is nothing left to run.
func (l *Loop) Schedule(r Runnable) error {
	q := &l.queue
	q.mu.Lock()
	if q.ended {
		q.mu.Unlock()
		return l.opError("schedule", -1, ErrClosed)
	}
	q.pushLocked(r)
	q.mu.Unlock()
	l.wake()
	return nil
}

// Defer makes r run at the end of this turn, after the queued work and before the loop waits.
// Devices use it to write everything that a turn has produced at once. It does not allocate. What
// is deferred meanwhile, and an r whose Run returns more, runs in the same phase for up to 8
// rounds. The rest runs in the next turn, which does not wait. The caller guarantees that r is
// deferred at most once until its Run begins. Loop goroutine.
func (l *Loop) Defer(r Runnable) {
	l.checkOwner()
	l.deferred = append(l.deferred, r)
	if l.embedded != nil && !l.life.inTurn {
		l.wake()
	}
}
