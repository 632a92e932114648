package eventlooptest

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Op names a Poller method for Fail.
type Op string

// The methods that can be made to fail.
const (
	OpAdd    Op = "add"
	OpModify Op = "modify"
	OpRemove Op = "remove"
	OpWait   Op = "wait"
	OpWake   Op = "wake"
	OpClose  Op = "close"
)

// Poller is a scripted eventloop.Poller. File descriptors are any numbers; nothing is opened.
type Poller struct {
	clock *Clock // nil: the time package

	mu      sync.Mutex
	fds     map[int]*watch
	pending []report
	faults  map[Op][]error
	wakes   int
	waits   int
	woken   bool
	closed  bool
	timer   *time.Timer   // Wait's
	kick    chan struct{} // has a token when pending or woken changed; ends the Wait under way
}

type watch struct {
	tag      uint64
	interest eventloop.Events
	removed  bool
}

type report struct {
	w      *watch
	tag    uint64 // as it was when the report was made
	events eventloop.Events
}

// NewPoller makes a Poller whose time-outs are the time package's: virtual inside a bubble.
func NewPoller() *Poller { return NewPollerOn(nil) }

// NewPollerOn makes a Poller that knows no time but clock's: a Wait ends, early perhaps, whenever
// the clock is moved. Give the loop the same clock. nil is NewPoller.
func NewPollerOn(clock *Clock) *Poller {
	p := &Poller{
		clock:  clock,
		fds:    make(map[int]*watch),
		faults: make(map[Op][]error),
		kick:   make(chan struct{}, 1),
	}
	if clock != nil {
		clock.addNudge(p.interruptWait)
	}
	return p
}

// Add implements eventloop.Poller: EEXIST for an fd that is watched, EBADF for a negative one.
func (p *Poller) Add(fd int, ev eventloop.Events, tag uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.nextFault(OpAdd); err != nil {
		return err
	}
	if fd < 0 {
		return unix.EBADF
	}
	if w := p.fds[fd]; w != nil && !w.removed {
		return unix.EEXIST
	}
	p.fds[fd] = &watch{tag: tag, interest: ev}
	return nil
}

// Modify implements eventloop.Poller: ENOENT for an fd that is not watched.
func (p *Poller) Modify(fd int, ev eventloop.Events, tag uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.nextFault(OpModify); err != nil {
		return err
	}
	w := p.fds[fd]
	if w == nil || w.removed {
		return unix.ENOENT
	}
	w.interest, w.tag = ev, tag
	p.recheckWait() // earlier reports may match the new interest
	return nil
}

// Remove implements eventloop.Poller: ENOENT for an fd that is not watched. Events already fired
// for it are still reported with its old tag, as it may be with epoll.
func (p *Poller) Remove(fd int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.nextFault(OpRemove); err != nil {
		return err
	}
	w := p.fds[fd]
	if w == nil || w.removed {
		return unix.ENOENT
	}
	w.removed = true
	return nil
}

// Wait implements eventloop.Poller. It blocks on channels only.
func (p *Poller) Wait(dst []eventloop.Ready, timeout time.Duration) (int, error) {
	p.mu.Lock()
	p.waits++
	if err := p.nextFault(OpWait); err != nil {
		p.mu.Unlock()
		return 0, err
	}
	n, done := p.collectReady(dst)
	p.mu.Unlock()
	if done || timeout == 0 {
		return n, nil
	}
	var expired <-chan time.Time // nil never comes
	if timeout > 0 && p.clock == nil {
		if p.timer == nil {
			p.timer = time.NewTimer(timeout)
		} else {
			p.timer.Reset(timeout)
		}
		defer p.timer.Stop()
		expired = p.timer.C
	}
	for {
		select {
		case <-p.kick:
		case <-expired:
			return 0, nil
		}
		p.mu.Lock()
		err := p.nextFault(OpWait)
		if err == nil {
			n, done = p.collectReady(dst)
		}
		p.mu.Unlock()
		if done || err != nil {
			return n, err
		}
	}
}

// collectReady moves due reports to dst, and reports whether Wait is over.
func (p *Poller) collectReady(dst []eventloop.Ready) (n int, done bool) {
	kept := p.pending[:0]
	for _, r := range p.pending {
		bits := r.events
		if !r.w.removed {
			bits &= r.w.interest | eventloop.Hangup | eventloop.Error
		}
		if bits == 0 || n == len(dst) {
			kept = append(kept, r)
			continue
		}
		dst[n] = eventloop.Ready{Tag: r.tag, Events: bits}
		n++
		if r.events &^= bits; r.events != 0 {
			kept = append(kept, r)
		}
	}
	p.pending = kept
	done = n > 0 || p.woken
	p.woken = false
	return n, done
}

// Wake implements eventloop.Poller.
func (p *Poller) Wake() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.wakes++
	if err := p.nextFault(OpWake); err != nil {
		return err
	}
	p.woken = true
	p.recheckWait()
	return nil
}

// Close implements eventloop.Poller.
func (p *Poller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.nextFault(OpClose)
}

// interruptWait ends the Wait under way, or the next, without counting as a Wake.
func (p *Poller) interruptWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = true
	p.recheckWait()
}

// recheckWait makes the current Wait, or the next one, check again.
func (p *Poller) recheckWait() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// nextFault removes and returns the next scripted error of op.
func (p *Poller) nextFault(op Op) error {
	queued := p.faults[op]
	if len(queued) == 0 {
		return nil
	}
	p.faults[op] = queued[1:]
	return queued[0]
}

// Fire reports fd ready for ev, once. Bits that the fd is not watched for are reported when it is
// watched for them. An fd that was removed is reported with its old tag: a stale report, which a
// loop must not deliver to any handler. Fire panics for an fd that was never added, because such a
// test would wait forever.
func (p *Poller) Fire(fd int, ev eventloop.Events) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fds[fd]
	if w == nil {
		panic(fmt.Sprintf("eventlooptest: Fire(%d, %v): the fd was never added", fd, ev))
	}
	p.pending = append(p.pending, report{w, w.tag, ev})
	p.recheckWait()
}

// Fail makes the next calls of op fail, one per error. A Wait that already blocks returns its error
// immediately.
func (p *Poller) Fail(op Op, errs ...error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults[op] = append(p.faults[op], errs...)
	p.recheckWait()
}

// Interest returns the events that fd is watched for; false when it is not watched.
func (p *Poller) Interest(fd int) (eventloop.Events, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fds[fd]
	if w == nil || w.removed {
		return 0, false
	}
	return w.interest, true
}

// Wakes counts the Wake calls, the ones that failed included.
func (p *Poller) Wakes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wakes
}

// Waits counts the Wait calls.
func (p *Poller) Waits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits
}

// Closed reports whether the loop has closed the Poller.
func (p *Poller) Closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
