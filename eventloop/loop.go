package eventloop

import (
	"cmp"
	"log/slog"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/internal/optional"
)

// Loop is one goroutine's event loop: fds, timers, posted work and Runnables. The package comment
// specifies which goroutines may call which method.
type Loop struct {
	cfg    Config
	log    *slog.Logger
	poller Poller
	yield  func() // runtime.Gosched; tests count it

	queue  queue
	asleep atomic.Bool // the loop is about to wait: a wake-up is needed

	// Owned by the loop's goroutine.
	time     turnClock
	between  bool      // no turn runs: what is called prepares the loop, or is called by its host
	lastWork time.Time // last turn with work, for Spin
	events   []Ready
	fds      fdTable
	glancing glancing
	strays   strays
	idle     int // turns without work in a row
	timers   timerHeap
	deferred deferral
	at       progress
	ends     []func(error) // of OnGoexit
	handoff  int           // number of yields due after work was passed to another goroutine
	yielded  int64         // when the loop last yielded before a wait, as turnClock.elapsed
	host     hostTimer

	calls    callbacks
	life     life
	watchdog watchdog
	meter    meter

	// For any goroutine to read.
	runs    atomic.Uint64
	wakeups atomic.Uint64
}

// Logger is Config.Logger, or slog's default. Any goroutine.
func (l *Loop) Logger() *slog.Logger { return l.log }

// New makes a loop. It opens the loop's epoll and eventfd (a timerfd is opened when it is needed).
// So every loop must be shut down, even if it never ran. Errors: EMFILE, ENFILE;
// errors.ErrUnsupported where there is no epoll and no Config.Poller.
func New(config ...Config) (*Loop, error) {
	cfg := optional.Value(config)
	cfg.Name = cmp.Or(cfg.Name, "loop")
	cfg.StallAfter = cmp.Or(cfg.StallAfter, defaultStall)
	if cfg.TurnBudget <= 0 {
		cfg.TurnBudget = defaultBudget
	}
	if cfg.SpinFor <= 0 {
		cfg.SpinFor = defaultSpinFor
	}
	l := &Loop{cfg: cfg, poller: cfg.Poller, yield: runtime.Gosched}
	if l.log = cfg.Logger; l.log == nil {
		l.log = slog.Default()
	}
	if l.poller == nil {
		p, err := newPoller()
		if err != nil {
			return nil, l.opError("open", -1, err)
		}
		l.poller = p
	}
	l.time.start(cfg.Clock)
	l.lastWork, l.between = l.time.now, true
	l.calls.cfg, l.calls.log, l.calls.watchdog, l.calls.mu = &l.cfg, l.log, &l.watchdog, &l.queue.mu
	l.watchdog.cfg, l.watchdog.log, l.watchdog.life, l.watchdog.calls = &l.cfg, l.log, &l.life, &l.calls
	l.events = make([]Ready, eventsPerWait)
	l.fds.byFD = make(map[int]*watch)
	l.life.done = make(chan struct{})
	return l, nil
}

// Name returns the loop's name.
func (l *Loop) Name() string { return l.cfg.Name }

// Now returns the loop's clock as of the start of this turn, or the present time between the turns
// of an embedded loop. Loop goroutine.
func (l *Loop) Now() time.Time {
	if l.time.stale || l.between {
		l.time.read()
	}
	return l.time.now
}

// OnLoop reports whether the caller runs on the loop's goroutine. It costs some microseconds and
// an allocation, because Go hides goroutine ids well. It is for rare checks, before something that
// would wait for the loop.
func (l *Loop) OnLoop() bool {
	id := l.life.goroutine.Load()
	return id != 0 && id == goroutineID()
}

// checkGoroutine panics when the caller is not on the loop's goroutine. A loop that has none yet
// may be prepared on any.
func (l *Loop) checkGoroutine() {
	if !l.cfg.CheckGoroutine {
		return
	}
	if id := l.life.goroutine.Load(); id != 0 && id != goroutineID() {
		panic("eventloop " + l.cfg.Name + ": called on goroutine " + strconv.FormatUint(goroutineID(), 10) +
			", but the loop's is " + strconv.FormatUint(id, 10))
	}
}

// Handoff announces that the caller, on the loop, has just passed work to another goroutine (a
// channel send, an unblocked Wait). The loop then yields its processor twice: after the fds and
// timers of the turn, and before it blocks. Otherwise the goroutine would wait until the scheduler
// notices that the processor's thread sleeps in the kernel, which takes some 20 times longer
// (BenchmarkPostRoundTrip: 26 µs instead of 1.4). Work that it posts after the first yield runs in
// the same turn, which also sends the output.
func (l *Loop) Handoff() { l.handoff = 2 }

// Stats are a loop's counters since it was made.
type Stats struct {
	Turns   uint64 // passes through the loop
	Wakeups uint64 // Wake calls: eventfd writes
	Posts   uint64 // functions accepted by Post
	Runs    uint64 // pieces of queued work run: posted functions and Runnables
	Panics  uint64 // callbacks that panicked
	FDs     int    // fds registered now
	Timers  int    // timers armed now
	// Queued is the run queue: pieces of queued work that wait. Those that the present turn has run
	// are counted until it ends.
	Queued int
	// Busy is the time in turns that had something to do, without the present one.
	Busy time.Duration
	// LongestTurn is the duration of the longest finished turn.
	LongestTurn time.Duration
	// RecentTurn is the duration of the longest turn that finished in the last 10 to 20 s.
	RecentTurn time.Duration
	// LongestWait is the longest time between two turns: with nothing to do, or without a
	// processor.
	LongestWait time.Duration
	// Turn is the duration of the current turn so far; 0: idle.
	Turn time.Duration
}

// Stats reads the counters. Any goroutine. Each counter is exact, but they are not read at the
// same instant.
func (l *Loop) Stats() Stats {
	l.queue.mu.Lock()
	posts, pushes := l.queue.posts, l.queue.pushes
	l.queue.mu.Unlock()
	runs := l.runs.Load()
	return Stats{
		Turns:       l.calls.turns.Load(),
		Wakeups:     l.wakeups.Load(),
		Posts:       posts,
		Runs:        runs,
		Panics:      l.calls.panics.Load(),
		FDs:         int(l.fds.count.Load()),
		Timers:      int(l.timers.count.Load()),
		Queued:      max(int(pushes-runs), 0), // elements may have been pushed and run in between
		Busy:        time.Duration(l.meter.busy.Load()),
		LongestTurn: time.Duration(l.meter.longest.Load()),
		RecentTurn:  l.meter.longestRecent(l.time.elapsed()),
		LongestWait: time.Duration(l.meter.longestWait.Load()),
		Turn:        l.inTurn(),
	}
}

// opError returns nil for a nil err.
func (l *Loop) opError(op string, fd int, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Loop: l.cfg.Name, FD: fd, Err: err}
}

// wakeIfAsleep ends the loop's wait if the loop has announced that it sleeps. The loop sets its
// flag first and then looks at the queue again. The caller has queued its element first and
// then reads the flag. So at least one of the two sees the other's write. Only one caller per sleep
// writes to the eventfd.
func (l *Loop) wakeIfAsleep() {
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) {
		l.wakeups.Add(1)
		if err := l.poller.Wake(); err != nil {
			l.log.Error("eventloop: wake-up failed", "loop", l.cfg.Name, "err", err)
		}
	}
}

// progress is where a turn is.
type progress struct {
	reports   int // number of ready fds
	delivered int // reports that were delivered
	ran       int // pieces of queued work, not counted yet
	undone    int // deferred work left undone
}
