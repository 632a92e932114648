package eventloop

import (
	"fmt"
	"sync/atomic"
)

// Handler is called when its fd is ready.
type Handler interface {
	// Ready is called on the loop. Readiness is level-triggered: input that is not consumed is
	// reported again in the next turn. A Handler that panics keeps its registration; OnPanic may
	// remove it.
	Ready(ev Events)
}

// Glancer is a Handler that a polling loop may ask for work without asking the kernel first
// whether its fd is ready. The loop does that with the fd that was ready last, as long as no other
// one is ready. It saves a system call between the arrival of bytes and reading them.
type Glancer interface {
	Handler
	// Glance reads available input, and reports whether there was any. Loop goroutine.
	Glance() (worked bool)
}

// watch is an fd that a loop watches.
type watch struct {
	fd       int
	interest Events
	tag      uint64
	handler  Handler
	task     Runnable // fdTask, for callbacks.run
	look     Runnable // glanceTask, if the handler is a Glancer
	ready    Events   // events that task reports to the handler
	removed  bool
}

// fdTask makes a handler's call a Runnable, so that there is one path into callbacks.
type fdTask struct{ *watch }

func (t fdTask) identifyCallback() (Holder, any) { return t.identifyHandler() }

func (t fdTask) Run(int) bool {
	t.handler.Ready(t.ready)
	return false
}

// glanceTask makes a glance a Runnable.
type glanceTask struct{ *watch }

func (t glanceTask) identifyCallback() (Holder, any) { return t.identifyHandler() }

func (t glanceTask) Run(int) (worked bool) { return t.handler.(Glancer).Glance() }

// identifyHandler returns the handler's name, and the handler.
func (w *watch) identifyHandler() (Holder, any) {
	if n, ok := w.handler.(named); ok {
		return Holder{"handler", nameOf(n)}, n
	}
	return Holder{"handler", fmt.Sprintf("%T of fd %d", w.handler, w.fd)}, w.handler
}

// glances bounds how often a loop glances at one fd before it asks the kernel about all.
const glances = 8

// glancing is the fd that a polling loop glances at.
type glancing struct {
	w    *watch // last ready watch, if its handler is a Glancer
	left int    // glances until the kernel is polled
}

// chooseFD selects the fd to glance at: the only one in the kernel's reports. If exactly one fd was
// ready, that is the one to glance at.
func (g *glancing) chooseFD(fds *fdTable, reports []Ready) {
	g.left = glances
	switch len(reports) {
	case 0:
	case 1:
		if g.w = fds.find(reports[0].Tag); g.w != nil && g.w.look == nil {
			g.w = nil
		}
	default:
		g.w = nil
	}
}

// fdTable finds a watch by the tag of a report: slot in the low half, the slot's generation in the
// high half. A report that was taken from the kernel before its watch was removed carries an old
// generation and is dropped.
type fdTable struct {
	slots []slot
	free  []uint32
	byFD  map[int]*watch
	count atomic.Int64 // of byFD, for any goroutine to read
}

type slot struct {
	generation uint32
	w          *watch
}

func (t *fdTable) insert(w *watch) {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.w = w
	w.tag = uint64(s.generation)<<32 | uint64(i)
}

// setFD makes w the watch of its fd.
func (t *fdTable) setFD(w *watch) {
	t.byFD[w.fd] = w
	t.count.Store(int64(len(t.byFD)))
}

// remove removes w from the tables.
func (t *fdTable) remove(w *watch) {
	w.removed = true
	t.release(w)
	delete(t.byFD, w.fd)
	t.count.Store(int64(len(t.byFD)))
}

func (t *fdTable) release(w *watch) {
	i := uint32(w.tag)
	t.slots[i].generation++
	t.slots[i].w = nil
	t.free = append(t.free, i)
}

func (t *fdTable) find(tag uint64) *watch {
	i := uint32(tag)
	if uint64(i) >= uint64(len(t.slots)) || t.slots[i].generation != uint32(tag>>32) {
		return nil
	}
	return t.slots[i].w
}
