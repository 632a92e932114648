package eventloop

import (
	"fmt"
	"reflect"
	"runtime"
	"time"
)

// Holder is the callback that has the loop.
type Holder struct {
	Kind string // "handler", "timer", "post" or "runnable"; empty: none
	Name string // what LoopName says, or the type with the fd, or the function's name
}

// String is kind and name.
func (h Holder) String() string {
	if h.Kind == "" {
		return "nobody"
	}
	return h.Kind + " " + h.Name
}

// named may be implemented by Handlers and Runnables, to be found in reports. LoopName is called on any goroutine while the callback
// runs: it returns something that does not change.
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
		return Holder{"runnable", r.LoopName()}
	default:
		return Holder{"runnable", fmt.Sprintf("%T", r)}
	}
}

// describe names the handler.
func (r *Registration) describe() Holder {
	if n, ok := r.handler.(named); ok {
		return Holder{"handler", n.LoopName()}
	}
	return Holder{"handler", fmt.Sprintf("%T of fd %d", r.handler, r.fd)}
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

// currentHolder names who has the loop. Any goroutine: what holder points to is written before it is published, or under the
// queue's lock.
func (l *Loop) currentHolder() Holder {
	l.queue.mu.Lock()
	var r Runnable
	if p := l.holder.Load(); p != nil {
		r = *p
	}
	l.queue.mu.Unlock()
	return describe(r)
}

// Stall is a callback that holds its loop, as reported to Config.OnStall.
type Stall struct {
	Loop   string
	Holder Holder
	For    time.Duration // how long it has been seen; at least Config.StallAfter
}

type watchdog struct {
	stop chan struct{}
	done chan struct{}
}

func (l *Loop) startWatchdog() {
	if l.cfg.StallAfter <= 0 {
		return
	}
	l.watchdog = watchdog{stop: make(chan struct{}), done: make(chan struct{})}
	go l.watch()
}

func (l *Loop) stopWatchdog() {
	if l.watchdog.stop == nil {
		return
	}
	close(l.watchdog.stop)
	<-l.watchdog.done
}

// watch looks a few times per StallAfter whether the loop is still in the callback it was in before. A call is known by
// its turn and the place of its Runnable: only deferred work that defers itself, and glances, of which the last but one found nothing,
// can be in one place twice in a turn.
func (l *Loop) watch() {
	defer close(l.watchdog.done)
	tick := time.NewTicker(max(l.cfg.StallAfter/4, time.Millisecond))
	defer tick.Stop()
	var (
		turn     uint64
		holder   *Runnable
		since    time.Time
		reported bool
	)
	for {
		select {
		case <-l.watchdog.stop:
			return
		case <-tick.C:
		}
		now, t, h := time.Now(), l.turns.Load(), l.holder.Load()
		if h == nil || h != holder || t != turn {
			turn, holder, since, reported = t, h, now, false
			continue
		}
		if held := now.Sub(since); held >= l.cfg.StallAfter && !reported {
			reported = true
			l.stalled(Stall{Loop: l.cfg.Name, Holder: l.currentHolder(), For: held})
		}
	}
}

func (l *Loop) stalled(s Stall) {
	if s.Holder.Kind == "" {
		return // it has just let go
	}
	if l.cfg.OnStall != nil {
		l.cfg.OnStall(s)
		return
	}
	l.log.Warn("eventloop: stalled", "loop", s.Loop, "holder", s.Holder.String(), "for", s.For)
}
