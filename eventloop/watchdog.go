package eventloop

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Holder is the callback that has the loop.
type Holder struct {
	Kind string // "handler", "timer", "post" or "runnable", "watchdog" for OnStall; empty: none
	Name string // what LoopName says, or the type with the fd, or the function's name
}

// String is kind and name.
func (h Holder) String() string {
	if h.Kind == "" {
		return "nobody"
	}
	return h.Kind + " " + h.Name
}

// named may be implemented by Handlers and Runnables, to be found in reports. LoopName is called on
// a goroutine of its own while the callback runs: it returns something that does not change, at
// once.
type named interface{ LoopName() string }

// describe names the callback behind r.
func describe(r Runnable) Holder {
	switch r := r.(type) {
	case nil:
		return Holder{}
	case fdTask:
		return r.r.describe()
	case glanceTask:
		return r.r.describe()
	case timerFunc:
		return Holder{"timer", functionName(r)}
	case postFunc:
		return Holder{"post", functionName(r)}
	case named:
		return Holder{"runnable", nameOf(r)}
	default:
		return Holder{"runnable", fmt.Sprintf("%T", r)}
	}
}

// describe names the handler.
func (r *Registration) describe() Holder {
	if n, ok := r.handler.(named); ok {
		return Holder{"handler", nameOf(n)}
	}
	return Holder{"handler", fmt.Sprintf("%T of fd %d", r.handler, r.fd)}
}

// nameWait is how long a LoopName may take.
const nameWait = time.Second

// nameOf asks n for its name, on a goroutine that may panic, block or end: the asker is the loop,
// the watchdog or a Shutdown. Where no name comes it is the type's.
func nameOf(n named) string {
	name := make(chan string, 1)
	go func() {
		s := fmt.Sprintf("%T", n)
		defer func() {
			if recover() != nil {
				s += " (LoopName panicked)"
			}
			name <- s
		}()
		s = n.LoopName()
	}()
	late := time.NewTimer(nameWait)
	defer late.Stop()
	select {
	case s := <-name:
		return s
	case <-late.C:
		return fmt.Sprintf("%T (LoopName does not return)", n)
	}
}

// functionName is where fn was written: "main.serve.func1".
func functionName(fn any) string {
	if f := runtime.FuncForPC(reflect.ValueOf(fn).Pointer()); f != nil {
		return f.Name()
	}
	return "unknown"
}

// who is the value behind r that its owner knows.
func who(r Runnable) any {
	switch r := r.(type) {
	case fdTask:
		return r.r.handler
	case glanceTask:
		return r.r.handler
	case timerFunc, postFunc:
		return nil
	default:
		return r
	}
}

// currentHolder names who has the loop. Any goroutine: what holder points to is written before it
// is published, or under the queue's lock.
func (l *Loop) currentHolder() Holder {
	l.queue.mu.Lock()
	var r Runnable
	if p := l.holder.Load(); p != nil {
		if b := l.blamed.Load(); b != nil {
			p = b
		}
		r = *p
	}
	l.queue.mu.Unlock()
	if r == nil && l.watchdog.tells.Load() {
		return Holder{"watchdog", functionName(l.cfg.OnStall)} // the loop's end waits for it
	}
	return describe(r)
}

// Stall is a callback that holds its loop, as reported to Config.OnStall.
type Stall struct {
	Loop   string
	Holder Holder
	For    time.Duration // how long it has been seen; at least Config.StallAfter
	Stack  []byte        // of the loop's goroutine; nil in a process of more than 1,000 goroutines, which would all have to stop for it
}

type watchdog struct {
	stop   chan struct{}
	done   chan struct{}
	awake  chan struct{} // holds a token when the loop has something to do again
	asleep atomic.Bool   // the loop had nothing to do, so nor has the watchdog
	id     atomic.Uint64 // its goroutine's, which may not wait for the loop to end
	tells  atomic.Bool   // OnStall is under way

	// The watchdog's own, or that of the goroutine that takes its place.
	last  sight
	since time.Time
	due   time.Duration // of the next alarm
}

// rouse ends the watchdog's sleep. Loop goroutine.
func (w *watchdog) rouse() {
	w.asleep.Store(false)
	select {
	case w.awake <- struct{}{}:
	default:
	}
}

func (l *Loop) startWatchdog() {
	w := &l.watchdog
	if l.cfg.StallAfter < 0 || w.stop != nil {
		return
	}
	w.stop, w.done, w.awake = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	go l.watch()
}

func (l *Loop) stopWatchdog() {
	if l.watchdog.stop == nil {
		return
	}
	close(l.watchdog.stop)
	<-l.watchdog.done
}

// sight is what the watchdog sees of the callback that has the loop. A call is known by its turn
// and the place of its Runnable: only deferred work that defers itself, and glances, of which the
// last but one found nothing, can be in one place twice in a turn.
type sight struct {
	turn           uint64
	holder, blamed *Runnable
}

func (l *Loop) look() sight { return sight{l.turns.Load(), l.holder.Load(), l.blamed.Load()} }

// watch looks a few times per StallAfter whether the loop is still in the callback it was in
// before. While the loop has nothing to do the watchdog sleeps, so that an idle process is not
// woken for it.
func (l *Loop) watch() {
	w := &l.watchdog
	id := goroutineID()
	w.id.Store(id)
	owners.add(id, l)
	over := false
	defer func() {
		owners.remove(id, l)
		if over {
			close(w.done)
		} else {
			go l.watch() // OnStall has ended the goroutine
		}
	}()
	tick := time.NewTicker(max(l.cfg.StallAfter/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			over = true
			return
		case <-tick.C:
		}
		now, s := time.Now(), l.look()
		switch held := now.Sub(w.since); {
		case s != w.last:
			w.last, w.since, w.due = s, now, l.cfg.StallAfter
		case s.holder == nil:
			tick.Stop()
			if !l.sleepWatchdog() {
				over = true
				return
			}
			tick.Reset(max(l.cfg.StallAfter/4, time.Millisecond))
		case held >= w.due:
			first := w.due == l.cfg.StallAfter
			w.due = 2 * held
			l.alarm(first, held)
		}
	}
}

// alarm tells that a callback holds the loop: OnStall once, then whoever waits, whatever OnStall
// did.
func (l *Loop) alarm(first bool, held time.Duration) {
	if l.cfg.Alarm != nil {
		defer l.cfg.Alarm.ring()
	}
	if first {
		l.stalled(held)
	}
}

// sleepWatchdog waits until the loop has something to do. Not ok: it has ended.
func (l *Loop) sleepWatchdog() (ok bool) {
	l.watchdog.asleep.Store(true)
	if l.holder.Load() != nil { // it has begun meanwhile, and may not have seen the mark
		l.watchdog.asleep.Store(false)
		return true
	}
	select {
	case <-l.watchdog.stop:
		return false
	case <-l.watchdog.awake:
		return true
	}
}

func (l *Loop) stalled(held time.Duration) {
	s := Stall{Loop: l.cfg.Name, Holder: l.currentHolder(), For: held, Stack: l.stack()}
	if s.Holder.Kind == "" {
		return // it has just let go
	}
	if l.cfg.OnStall != nil {
		l.watchdog.tells.Store(true)
		defer func() {
			l.watchdog.tells.Store(false)
			if v := recover(); v != nil {
				l.log.Error("eventloop: OnStall panicked", "loop", l.cfg.Name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
		}()
		l.cfg.OnStall(s)
		return
	}
	l.log.Warn("eventloop: stalled", "loop", s.Loop, "holder", s.Holder.String(), "for", s.For, "stack", string(s.Stack))
}

// stackOf is for how many goroutines a stack is looked for: Go tells another goroutine's only with
// all the others', which stand meanwhile.
const stackOf = 1000

// stack is where the loop's goroutine is.
func (l *Loop) stack() []byte {
	if runtime.NumGoroutine() > stackOf {
		return nil
	}
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	at := bytes.Index(all, fmt.Appendf(nil, "goroutine %d [", l.life.owner.Load()))
	if at < 0 {
		return nil
	}
	mine, _, _ := bytes.Cut(all[at:], []byte("\n\n"))
	return bytes.Clone(mine)
}
