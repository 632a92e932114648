package world

import (
	"bytes"
	"cmp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/internal/sched"
)

// task is a goroutine off the loops.
type task struct {
	p    *Process
	n    int // in the order of starts, or of making timers
	turn chan bool
	due  time.Time // not to run before
	// it belongs to a twin's machine, not to its program
	machine bool
}

// mayContinue reports whether the task's goroutine may continue.
func (t *task) mayContinue() bool { return t.machine || t.p.mayRun() }

// newScheduler returns the sched.Scheduler of a process's program.
func (p *Process) newScheduler() *sched.Scheduler {
	return &sched.Scheduler{Turn: p.assignNumber, Wait: p.awaitTurn, Source: p.source, Handles: &p.w.handles}
}

// Go runs fn on a goroutine of the process. Any of the process's goroutines and actors may call
// it.
func (p *Process) Go(fn func()) { go p.assignNumber(fn)() }

// assignNumber assigns fn the next number of a goroutine.
func (p *Process) assignNumber(fn func()) func() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.started++
	t := &task{p: p, n: p.started, turn: make(chan bool)}
	return func() {
		id := goroutineID()
		p.w.addTask(id, t)
		defer p.w.removeTask(id)
		defer t.recoverPanic()
		p.w.parkTask(t)
		fn()
	}
}

// recoverPanic fails the World if the task's goroutine panics. Outside of a simulation that would
// end its program.
func (t *task) recoverPanic() {
	if r := recover(); r != nil {
		t.p.w.Fail("%s: goroutine %d has panicked: %v\n%s", t.p.name, t.n, r, debug.Stack())
	}
}

// awaitTurn parks the calling goroutine until its turn, unless it is a loop's, which has its turn.
func (p *Process) awaitTurn() {
	if t := p.currentTask(); t != nil {
		p.w.parkTask(t)
	}
}

// currentTask returns the calling goroutine's task, or nil.
func (p *Process) currentTask() *task {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.w.tasks[goroutineID()]
}

// cancelWaits ends the goroutines of the process that sleep or wait for their turn, one by one. A
// deferred call may wait once more.
func (p *Process) cancelWaits() {
	var all []*task
	p.w.mu.Lock()
	p.w.parked = slices.DeleteFunc(p.w.parked, func(t *task) bool {
		if t.p == p {
			all = append(all, t)
		}
		return t.p == p
	})
	p.w.mu.Unlock()
	for _, t := range all {
		ended := t.turn
		t.turn = make(chan bool)
		close(ended)
		synctest.Wait()
	}
}

// Sleep is time.Sleep for the process's goroutines. It ends the goroutine when the process ends.
func (p *Process) Sleep(d time.Duration) {
	t := p.currentTask()
	if t == nil {
		p.w.Fail("%s: Sleep on a goroutine that Process.Go has not started", p.name)
		runtime.Goexit()
	}
	t.due = time.Now().Add(d)
	p.w.parkTask(t)
}

// parkLoop parks the goroutine of a loop whose twin runs the machine without its program.
func (w *World) parkLoop() {
	w.mu.Lock()
	q := w.loops[goroutineID()]
	w.mu.Unlock()
	if q != nil {
		w.parkTask(&task{p: q.p, n: -1 - q.number, turn: make(chan bool), machine: true})
	}
}

// addTask and removeTask maintain the map from goroutines to tasks.
func (w *World) addTask(id uint64, t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks[id] = t
}

func (w *World) removeTask(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tasks, id)
}

// parkTask blocks the task's goroutine until the World lets it continue, or ends it.
func (w *World) parkTask(t *task) {
	w.mu.Lock()
	if w.over {
		w.mu.Unlock()
		runtime.Goexit()
	}
	i, _ := slices.BinarySearchFunc(w.parked, t, func(a, b *task) int {
		return cmp.Or(a.p.number-b.p.number, a.n-b.n)
	})
	w.parked = slices.Insert(w.parked, i, t)
	w.mu.Unlock()
	w.wakeScript()
	if !<-t.turn {
		runtime.Goexit()
	}
}

// goroutineID returns the calling goroutine's number, parsed from its stack.
func goroutineID() uint64 {
	var buf [64]byte
	s := buf[:runtime.Stack(buf[:], false)]
	s = bytes.TrimPrefix(s, []byte("goroutine "))
	s, _, _ = bytes.Cut(s, []byte(" "))
	id, _ := strconv.ParseUint(string(s), 10, 64)
	return id
}
