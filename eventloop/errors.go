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
	// ErrRunning: another goroutine runs the loop already, or it is run in the other way (Run or
	// Turn).
	ErrRunning = errors.New("the loop is run already")
)

// OpError says which operation on which loop failed. errors.Is finds the errno, ErrClosed and the
// like below it.
type OpError struct {
	// "open", "add", "modify", "remove", "wait", "run", "turn", "fd", "post", "schedule"
	Op   string
	Loop string // the loop's name
	FD   int    // the file descriptor it was about, -1 for none
	Err  error
}

func (e *OpError) Error() string {
	s := "eventloop " + e.Loop + ": " + e.Op
	if e.FD >= 0 {
		s += " fd " + strconv.Itoa(e.FD)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *OpError) Unwrap() error { return e.Err }

// ShutdownError says that a loop had not ended when Shutdown's context did, and what it was doing.
// The loop still ends when the callback that occupies its goroutine returns. When one of several
// Shutdowns runs out of time, those that wait longer get a ShutdownError with Undone, and with the
// context's cause of the first.
type ShutdownError struct {
	Loop   string
	Holder Holder // what ran at that moment; its zero value when nothing did
	// pieces of work that were accepted and, as the loop has ended now, will not be done
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

// Unwrap gives the context's cause.
func (e *ShutdownError) Unwrap() error { return e.Err }
