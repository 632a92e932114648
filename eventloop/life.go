package eventloop

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// mode specifies what runs a loop.
type mode uint8

const (
	fresh   mode = iota // undecided: set by Run, Start, Turn, FD or Shutdown
	running             // Run
	hosted              // run by a host, through Turn
	ending              // run by Shutdown, as nothing else ran it
	over                // ended
)

// life is a loop's lifetime from New to its end: what runs it, and which goroutines may not wait
// for it.
type life struct {
	mu        sync.Mutex
	mode      mode
	goroutine atomic.Uint64         // id of the loop's, 0 while it has none
	watcher   atomic.Uint64         // goroutine id of the watchdog, which may not wait for the loop
	closing   atomic.Bool           // Shutdown has begun
	abandon   atomic.Pointer[error] // why a Shutdown stopped waiting; set: do not drain
	inTurn    bool                  // a Turn is running; written by the loop's goroutine under mu
	over      atomic.Bool           // fds and timers have ended, for the loop's own calls
	failure   error                 // a *GoexitError; written by the loop's goroutine
	err       error                 // why the loop failed; written before done is closed
	left      error                 // work left undone; likewise
	done      chan struct{}
}

// claim lets the caller run the loop in mode m. A hosted loop may be claimed again by its host,
// also to end it.
func (f *life) claim(m mode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.claimLocked(m)
}

func (f *life) claimLocked(m mode) error {
	switch {
	case f.mode == hosted && m == hosted:
		return nil
	case f.closing.Load():
		return ErrClosed
	case f.mode == fresh:
		f.mode = m
		return nil
	default:
		return ErrRunning
	}
}

// setGoroutine makes the calling goroutine the loop's.
func (f *life) setGoroutine() {
	id := goroutineID()
	f.goroutine.Store(id)
	goroutines.add(id, f)
}

// clearGoroutine leaves the loop without a goroutine.
func (f *life) clearGoroutine() { goroutines.remove(f.goroutine.Swap(0), f) }

// hasGoroutine reports whether the loop has its goroutine now: a host's is its own between Turns.
func (f *life) hasGoroutine() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mode != hosted || f.inTurn
}

// giveUp makes the loop end without draining.
func (f *life) giveUp(ctx context.Context) {
	why := context.Cause(ctx)
	f.abandon.CompareAndSwap(nil, &why)
}

// result returns the result of Shutdown for a loop that has ended. A Shutdown that began after
// another had run out of time knows that the loop is not drained, so this is not reported again: it
// gets other errors only.
func (f *life) result(knows bool) error {
	if knows {
		return f.err
	}
	return errors.Join(f.err, f.left)
}

// takeOver takes a loop from a host that does not call Turn.
func (f *life) takeOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mode != hosted || f.inTurn {
		return false
	}
	f.mode = ending
	return true
}

// undoneError returns the error of a loop that was abandoned with n pieces of work left.
func (f *life) undoneError(loop string, n int) error {
	why := f.abandon.Load()
	if n == 0 || why == nil {
		return nil
	}
	return &ShutdownError{Loop: loop, Undone: n, Err: *why}
}

// goroutines has the loops by the ids of their goroutines and of their watchdogs'. A host's
// goroutine may have several.
var goroutines = goroutineTable{lives: make(map[uint64][]*life)}

type goroutineTable struct {
	mu    sync.Mutex
	lives map[uint64][]*life
}

func (t *goroutineTable) add(id uint64, f *life) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lives[id] = append(t.lives[id], f)
}

func (t *goroutineTable) remove(id uint64, f *life) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := slices.DeleteFunc(t.lives[id], func(other *life) bool { return other == f })
	if t.lives[id] = left; len(left) == 0 {
		delete(t.lives, id)
	}
}

func (t *goroutineTable) livesOf(id uint64) []*life {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lives[id])
}

// MayWait reports whether the calling goroutine may wait for work of loops. It returns ErrOnLoop on
// any loop's own goroutine. It also does so on a goroutine that OnStall is called on, because a
// loop's end waits for OnStall. The goroutine that embeds a loop may wait for other loops between
// two Turns, but never for its own. The check costs 1 to 10 µs, because Go hides goroutine ids
// well: use it in rare operations, and after an Alarm.
func MayWait() error {
	id := goroutineID()
	for _, f := range goroutines.livesOf(id) {
		if f.hasGoroutine() || f.watcher.Load() == id {
			return ErrOnLoop
		}
	}
	return nil
}

// goroutineID reads the calling goroutine's id from the first line of its stack trace, "goroutine
// 7 [running]:", the only place where Go shows it. It is 0 if that format has changed; a test
// checks that it has not.
func goroutineID() (id uint64) {
	var buf [40]byte
	line := buf[:runtime.Stack(buf[:], false)]
	const prefix = "goroutine "
	if len(line) < len(prefix) || string(line[:len(prefix)]) != prefix {
		return 0
	}
	for _, c := range line[len(prefix):] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uint64(c-'0')
	}
	return id
}
