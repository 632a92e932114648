package eventloop

// Handler is told what its fd is ready for.
type Handler interface {
	// Ready is called on the loop. Readiness is level-triggered: what is not consumed is told again in the next turn. A Handler that
	// panics keeps its registration; OnPanic may remove it.
	Ready(ev Events)
}

// Glancer is a Handler that a polling loop may ask without asking the kernel first whether its fd is ready: the one that was ready last,
// for as long as no other is. That saves the system call between the arrival of bytes and reading them.
type Glancer interface {
	Handler
	// Glance reads what may be there, and reports whether anything was. Loop goroutine.
	Glance() (worked bool)
}

// Registration is one fd in a loop. Its methods belong to the loop's goroutine.
type Registration struct {
	l        *Loop
	fd       int
	interest Events
	tag      uint64
	handler  Handler
	task     Runnable // fdTask, for call
	look     Runnable // glanceTask, if the handler is a Glancer
	ready    Events   // what task tells the handler
	removed  bool
}

// fdTask makes a handler's turn a Runnable, so that there is one way into callbacks.
type fdTask struct{ r *Registration }

func (t fdTask) Run(int) bool {
	t.r.handler.Ready(t.r.ready)
	return false
}

// glanceTask makes a glance a Runnable.
type glanceTask struct{ r *Registration }

func (t glanceTask) Run(int) (worked bool) { return t.r.handler.(Glancer).Glance() }

// glances bounds how often a loop glances at one fd before it asks the kernel about all.
const glances = 8

// glancing is the fd that a polling loop glances at.
type glancing struct {
	r    *Registration // that was ready last, if it can be glanced at
	left int           // before the kernel is asked
}

// found says what the kernel has reported: whoever was ready alone is the one to glance at.
func (g *glancing) found(l *Loop, reports []Ready) {
	g.left = glances
	switch len(reports) {
	case 0:
	case 1:
		if g.r = l.fds.find(reports[0].Tag); g.r != nil && g.r.look == nil {
			g.r = nil
		}
	default:
		g.r = nil
	}
}

// glance asks the fd that was ready last, until something is there or the kernel's turn to be asked has come. The turn's time is read
// when somebody wants it: most glances find nothing.
func (l *Loop) glance() (worked bool) {
	g := &l.glancing
	for g.r != nil && g.left > 0 && !l.queue.pending() {
		if g.r.removed {
			g.r = nil
			break
		}
		g.left--
		l.stale = true
		if l.call(&g.r.look) {
			g.left = 0 // the others' turn
			return true
		}
	}
	return false
}

// fdTable finds a registration by the tag of a report: slot in the low half, the slot's generation in the high half. A report
// that was taken from the kernel before its registration was removed carries an old generation and reaches nobody.
type fdTable struct {
	slots []slot
	free  []uint32
	byFD  map[int]*Registration
}

type slot struct {
	generation uint32
	r          *Registration
}

func (t *fdTable) insert(r *Registration) {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.r = r
	r.tag = uint64(s.generation)<<32 | uint64(i)
}

func (t *fdTable) release(r *Registration) {
	i := uint32(r.tag)
	t.slots[i].generation++
	t.slots[i].r = nil
	t.free = append(t.free, i)
}

func (t *fdTable) find(tag uint64) *Registration {
	i := uint32(tag)
	if uint64(i) >= uint64(len(t.slots)) || t.slots[i].generation != uint32(tag>>32) {
		return nil
	}
	return t.slots[i].r
}

// Add watches fd, level-triggered, and calls h when it is ready. The fd stays the caller's: Remove the registration first, then
// close it. The error is an *OpError: EBADF (not open), EEXIST (registered already), EPERM (cannot be polled), ENOSPC (the user's
// limit of epoll watches), ENOMEM, and whatever a Poller of the caller's says, EMFILE and ENFILE included; ErrClosed after the end.
// Loop goroutine, or before the loop runs.
func (l *Loop) Add(fd int, interest Events, h Handler) (*Registration, error) {
	l.checkOwner()
	if l.life.over.Load() {
		return nil, l.opError("add", fd, ErrClosed)
	}
	r := &Registration{l: l, fd: fd, interest: interest, handler: h}
	r.task = fdTask{r}
	if _, ok := h.(Glancer); ok {
		r.look = glanceTask{r}
	}
	l.fds.insert(r)
	if err := l.poller.Add(fd, interest, r.tag); err != nil {
		l.fds.release(r)
		return nil, l.opError("add", fd, err)
	}
	if old := l.fds.byFD[fd]; old != nil {
		l.forget(old) // closed without Remove, its number used again: it must not take the new one's place later
	}
	l.fds.byFD[fd] = r
	l.fdCount.Store(int64(len(l.fds.byFD)))
	return r, nil
}

// Modify changes what the fd is watched for; 0 leaves Hangup and Error. ErrClosed after Remove.
func (r *Registration) Modify(interest Events) error {
	l := r.l
	l.checkOwner()
	if r.removed || l.life.over.Load() {
		return l.opError("modify", r.fd, ErrClosed)
	}
	if err := l.poller.Modify(r.fd, interest, r.tag); err != nil {
		return l.opError("modify", r.fd, err)
	}
	r.interest = interest
	return nil
}

// Remove ends the registration: the handler is not called again, not even for what was ready in
// this turn. It does so even when it returns an error: EBADF, or ENOENT when the number is another
// file's by now, says that the fd was closed first, which may have hit somebody else's. Where a
// duplicate of it lives, the kernel goes on reporting it, to nobody, and the loop does not sleep
// while it is ready: see Limitations. A second Remove does nothing.
func (r *Registration) Remove() error {
	l := r.l
	l.checkOwner()
	if r.removed {
		return nil
	}
	l.forget(r)
	if l.life.over.Load() {
		return nil // the Poller is closed, and with it every watch
	}
	return l.opError("remove", r.fd, l.poller.Remove(r.fd))
}

// forget takes r out of the tables.
func (l *Loop) forget(r *Registration) {
	r.removed = true
	l.fds.release(r)
	delete(l.fds.byFD, r.fd)
	l.fdCount.Store(int64(len(l.fds.byFD)))
}

// dispatch tells a report to the handler it belongs to, if that still exists.
func (l *Loop) dispatch(report Ready) {
	r := l.fds.find(report.Tag)
	if r == nil {
		return
	}
	r.ready = report.Events
	l.call(&r.task)
}
