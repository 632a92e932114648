package eventloop

import (
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// WaitMode is how a loop waits when it has nothing to do. It trades processor time for latency.
type WaitMode uint8

const (
	// Block sleeps in the kernel until something happens: no processor time while idle, and a
	// wake-up (5 to 50 µs) per event.
	Block WaitMode = iota
	// Spin polls for Config.SpinFor after the last work, then blocks: a whole processor during
	// bursts and SpinFor beyond, none while idle.
	Spin
	// Busy polls forever and takes a whole processor. Use it only where one is reserved for the
	// loop.
	Busy
)

var waitModeNames = [...]string{"block", "spin", "busy"}

// String returns the mode in a word.
func (m WaitMode) String() string {
	if int(m) < len(waitModeNames) {
		return waitModeNames[m]
	}
	return fmt.Sprintf("WaitMode(%d)", uint32(m))
}

// MarshalText returns String's text.
func (m WaitMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText parses the text of MarshalText: "block", "spin" or "busy".
func (m *WaitMode) UnmarshalText(text []byte) error {
	i := slices.Index(waitModeNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("eventloop: wait mode %q: want one of %q", text, waitModeNames)
	}
	*m = WaitMode(i)
	return nil
}

// Config has the options of a loop. The zero value is a blocking loop over epoll on the wall clock.
type Config struct {
	// Name distinguishes loops in errors and logs. Empty: "loop".
	Name string
	// Wait is Block, Spin or Busy. Spin and Busy do not let a testing/synctest bubble's time
	// advance.
	Wait WaitMode
	// SpinFor is how long a Spin loop polls after its last work. 0: 50 µs.
	SpinFor time.Duration
	// Poller replaces epoll; the loop closes it. nil: epoll, on Linux.
	Poller Poller
	// Clock replaces the wall clock. With a Clock of the caller's the Poller has to measure
	// time-outs by it too.
	Clock Clock
	// TurnBudget is how many pieces of queued work (posted functions and Runnables) a turn runs
	// before fds and timers are looked at again. A Runnable whose Run returns more counts as
	// RunBudget pieces. 0: 1,024.
	TurnBudget int
	// StallAfter is how long one callback may occupy the loop before OnStall is called. 0: one
	// second. Negative: no watchdog, and no Alarm. The watchdog is a goroutine that sleeps while
	// the loop does.
	StallAfter time.Duration
	// OnStall is called on the watchdog's goroutine, once per callback that stalls. nil: logged.
	// The loop's end waits for it: Shutdown on that goroutine is ErrOnLoop.
	OnStall func(Stall)
	// Alarm rings after OnStall, and again while the callback goes on. nil: none.
	Alarm *Alarm
	// OnPanic is called on the loop for a callback that panicked, or ended its goroutine
	// (runtime.Goexit). After a panic the loop goes on, a Goexit ends it. nil: the panic is logged
	// with the stack. A panic in OnPanic is not recovered, so a program that should not survive a
	// panic can panic there. See the package comment, Errors.
	OnPanic func(Panic)
	// Logger gets the errors that cannot be returned to any caller. nil: slog.Default.
	Logger *slog.Logger
	// CheckGoroutine makes methods that belong to the loop's goroutine panic when they are called
	// on another one. The check costs some µs per call, so it is for tests. Without it only the
	// race detector finds such calls.
	CheckGoroutine bool
}

const eventsPerWait = 128

const (
	defaultBudget  = 1024
	defaultSpinFor = 50 * time.Microsecond
	defaultStall   = time.Second
)
