package eventloop

import (
	"log/slog"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

// WaitMode is how a loop waits when it has nothing to do. It trades processor time for latency.
type WaitMode uint8

const (
	// Block sleeps in the kernel until something happens: no processor time while idle, and a wake-up (5 to 50 µs) per event.
	Block WaitMode = iota
	// Spin polls for Config.SpinFor after the last work, then blocks: a whole processor during bursts and SpinFor beyond, none
	// while idle.
	Spin
	// Busy polls for ever: a whole processor, always. Only where one is set aside for the loop.
	Busy
)

// Config is how a loop is made. The zero value is a blocking loop over epoll on the wall clock.
type Config struct {
	// Name tells loops apart in errors and logs. Empty: "loop".
	Name string
	// Wait is Block, Spin or Busy. Spin and Busy do not let a testing/synctest bubble's time advance.
	Wait WaitMode
	// SpinFor is how long a Spin loop polls after its last work. 0: 50 µs.
	SpinFor time.Duration
	// Poller replaces epoll; the loop closes it. nil: epoll, on Linux.
	Poller Poller
	// Clock replaces the wall clock. With a Clock of the caller's the Poller has to measure time-outs by it too.
	Clock Clock
	// TurnBudget is how many pieces of queued work (posted functions and Runnables) a turn runs before fds and timers are looked
	// at again. A Runnable that reports more has used up RunBudget of them. 0: 1,024.
	TurnBudget int
	// StallAfter is how long one callback may hold the loop before OnStall is told. 0: one second.
	// Negative: no watchdog, and no Alarm. It costs a goroutine, which sleeps while the loop does.
	StallAfter time.Duration
	// OnStall is called on the watchdog's goroutine, once per callback that stalls. nil: logged.
	// The loop's end waits for it: Shutdown on that goroutine is ErrOnLoop.
	OnStall func(Stall)
	// Alarm is rung after OnStall, and again when the callback goes on holding the loop. nil: none.
	Alarm *Alarm
	// OnPanic is called on the loop for a callback that panicked, or ended its goroutine
	// (runtime.Goexit), after which the loop goes on, on another goroutine if it has to; Turn's
	// waits for another host. nil: logged with the stack. A panic in OnPanic is not recovered: a
	// program that would rather die than go on panics there. See the package comment, Errors.
	OnPanic func(Panic)
	// Logger gets what has no other way out. nil: slog.Default.
	Logger *slog.Logger
	// CheckOwner panics when a method that belongs to the loop's goroutine is called on another
	// one. Some µs per call, so for tests; without it only the race detector finds that.
	CheckOwner bool
}

const (
	eventsPerWait  = 128
	defaultBudget  = 1024
	defaultSpinFor = 50 * time.Microsecond
	defaultStall   = time.Second
)

// Loop is one goroutine's event loop: fds, timers, posted work and Runnables. See the package comment for who may call what.
type Loop struct {
	cfg    Config
	log    *slog.Logger
	clock  Clock
	poller Poller
	yield  func() // runtime.Gosched; tests count it

	queue  queue
	asleep atomic.Bool // the loop is about to wait: a wake-up is needed

	// Owned by the loop's goroutine.
	base     time.Time // timers count from here
	now      time.Time // the clock at the start of the turn
	stale    bool      // now is an earlier turn's
	lastWork time.Time // Spin: the last turn that had any
	events   []Ready
	fds      fdTable
	glancing glancing
	looked   uint64          // waits that found something
	strays   map[uint64]bool // tags that findStrays has seen; true: and told
	idle     int             // turns that found nothing, one after the other
	timers   timerHeap
	deferred []Runnable // this turn's Defers
	flushing []Runnable // those being run; written under queue.mu, like the queue's elements
	at       progress
	handoff  bool // work was given to another goroutine since the last wait
	embedded embedding

	life     life
	watchdog watchdog

	// For everybody's eyes.
	holder     atomic.Pointer[Runnable] // what runs now; nil while waiting
	blamed     atomic.Pointer[Runnable] // for whom it runs; nil: for itself
	turns      atomic.Uint64
	runs       atomic.Uint64
	panics     atomic.Uint64
	wakeups    atomic.Uint64
	fdCount    atomic.Int64
	timerCount atomic.Int64
}

// Logger is where that is logged which has no other way out. Any goroutine.
func (l *Loop) Logger() *slog.Logger { return l.log }

// New makes a loop. It holds its fds (epoll and eventfd, later a timerfd) from now on: a loop that
// is not wanted any more is given to Shutdown, even if it never ran. EMFILE, ENFILE;
// errors.ErrUnsupported where there is no epoll and no Config.Poller.
func New(cfg Config) (*Loop, error) {
	if cfg.Name == "" {
		cfg.Name = "loop"
	}
	if cfg.TurnBudget <= 0 {
		cfg.TurnBudget = defaultBudget
	}
	if cfg.SpinFor <= 0 {
		cfg.SpinFor = defaultSpinFor
	}
	if cfg.StallAfter == 0 {
		cfg.StallAfter = defaultStall
	}
	l := &Loop{cfg: cfg, log: cfg.Logger, clock: cfg.Clock, poller: cfg.Poller, yield: runtime.Gosched}
	if l.log == nil {
		l.log = slog.Default()
	}
	if l.clock == nil {
		l.clock = wallClock{}
	}
	if l.poller == nil {
		p, err := newPoller()
		if err != nil {
			return nil, l.opError("open", -1, err)
		}
		l.poller = p
	}
	l.base = l.clock.Now()
	l.now, l.lastWork = l.base, l.base
	l.events = make([]Ready, eventsPerWait)
	l.fds.byFD = make(map[int]*Registration)
	l.life.done = make(chan struct{})
	return l, nil
}

// Name is the loop's name.
func (l *Loop) Name() string { return l.cfg.Name }

// Now is the loop's clock as of the start of this turn. Loop goroutine.
func (l *Loop) Now() time.Time {
	if l.stale {
		l.now, l.stale = l.clock.Now(), false
	}
	return l.now
}

// OnLoop reports whether the caller runs on the loop's goroutine. It costs some microseconds and an
// allocation (Go hides goroutine ids well) and is for edges: before something that would wait for
// the loop.
func (l *Loop) OnLoop() bool {
	owner := l.life.owner.Load()
	return owner != 0 && owner == goroutineID()
}

// checkOwner is the ownership rule as an assertion. Before the loop has an owner everybody may prepare it.
func (l *Loop) checkOwner() {
	if !l.cfg.CheckOwner {
		return
	}
	if owner := l.life.owner.Load(); owner != 0 && owner != goroutineID() {
		panic("eventloop " + l.cfg.Name + ": called on goroutine " + strconv.FormatUint(goroutineID(), 10) +
			", but the loop's is " + strconv.FormatUint(owner, 10))
	}
}

// Handoff says that the caller, on the loop, has just given work to another goroutine (a channel send, an unblocked Wait). The loop
// then yields its processor once before it blocks. Otherwise the goroutine would wait until the scheduler notices that the
// processor's thread sleeps in the kernel, which takes some 20 times longer (BenchmarkPostRoundTrip: 26 µs instead of 1.4).
func (l *Loop) Handoff() { l.handoff = true }

// Defer has r run at the end of this turn, after the ready Runnables and before the loop waits: where devices gather what the turn
// wrote and flush it once. No allocation. What is deferred meanwhile, and an r that reports more, runs in the same phase for up to 8
// rounds; what is left then runs in the next turn, which does not wait. The caller guarantees that r is deferred at most once until
// its Run begins. Loop goroutine.
func (l *Loop) Defer(r Runnable) {
	l.checkOwner()
	l.deferred = append(l.deferred, r)
	if l.embedded.fd != nil && !l.embedded.inTurn {
		l.wake()
	}
}

// Stats are a loop's counters since it was made.
type Stats struct {
	Turns   uint64 // passes through the loop
	Wakeups uint64 // Wake calls: eventfd writes
	Posts   uint64 // functions accepted by Post
	Runs    uint64 // pieces of queued work run: posted functions and Runnables
	Panics  uint64 // callbacks that panicked
	FDs     int    // fds registered now
	Timers  int    // timers armed now
}

// Stats reads the counters. Any goroutine; each is exact, together they are a moment apart.
func (l *Loop) Stats() Stats {
	l.queue.mu.Lock()
	posts := l.queue.posts
	l.queue.mu.Unlock()
	return Stats{
		Turns:   l.turns.Load(),
		Wakeups: l.wakeups.Load(),
		Posts:   posts,
		Runs:    l.runs.Load(),
		Panics:  l.panics.Load(),
		FDs:     int(l.fdCount.Load()),
		Timers:  int(l.timerCount.Load()),
	}
}
