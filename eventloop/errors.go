package eventloop

import (
	"errors"
	"fmt"
	"strconv"
)

var (
	// ErrClosed: the loop is shutting down or has ended, or the registration was removed.
	ErrClosed = errors.New("closed")
	// ErrOnLoop: the call would wait for the loop that it runs on.
	ErrOnLoop = errors.New("called on the loop's own goroutine")
	// ErrRunning: another goroutine already runs the loop, or the loop is run in the other way (Run
	// or Turn).
	ErrRunning = errors.New("the loop is run already")
)

// OpError names the operation and the loop that failed. errors.Is matches the errno, ErrClosed and
// the like that it wraps.
type OpError struct {
	// "open", "add", "modify", "remove", "wait", "run", "turn", "fd", "post", "schedule"
	Op   string
	Loop string // the loop's name
	FD   int    // the file descriptor, -1 for none
	Err  error
}

func (e *OpError) Error() string {
	s := "eventloop " + e.Loop + ": " + e.Op
	if e.FD >= 0 {
		s += " fd " + strconv.Itoa(e.FD)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// ShutdownError reports a loop that had not ended when Shutdown's context did, and what occupied
// it. The loop still ends when the callback that occupies its goroutine returns. When one of
// several Shutdowns runs out of time, those that wait longer get a ShutdownError with Undone, and
// with the context's cause of the first.
type ShutdownError struct {
	Loop   string
	Holder Holder // the callback at that moment; the zero value: none
	// number of accepted pieces of work that will not run, because the loop has ended
	Undone int
	Err    error // the context's cause
}

func (e *ShutdownError) Error() string {
	if e.Undone > 0 {
		return fmt.Sprintf("eventloop %s: shutdown: ended with queued work undone (%d): %v", e.Loop, e.Undone, e.Err)
	}
	if e.Holder.Kind == "" {
		return fmt.Sprintf("eventloop %s: shutdown: nobody gave it a turn to end in: %v", e.Loop, e.Err)
	}
	return fmt.Sprintf("eventloop %s: shutdown: occupied by %v: %v", e.Loop, e.Holder, e.Err)
}

// Unwrap returns the context's cause.
func (e *ShutdownError) Unwrap() error { return e.Err }
