package eventloop

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Tags of the poller's own fds. A registration's tag has its slot below, and no process has 2^32-2
// open files.
const (
	wakeTag  = ^uint64(0)
	timerTag = ^uint64(0) - 1
)

// epoll is the kernel's Poller: one epoll instance and the eventfd that ends its wait.
type epoll struct {
	fd     int
	timer  int  // timerfd for embedding and for far time-outs; -1 until needed
	hosted bool // timer is used for embedding
	events []unix.EpollEvent

	far  time.Duration // shortest time-out that needs the timerfd
	base time.Time     // origin of next
	next time.Duration // expiry of the timerfd

	// mu protects the fd numbers. After Close they are all -1, because the process may use the
	// numbers for other files. Late callers are a Wake, and a host between two Turns whose loop
	// was shut down.
	mu    sync.Mutex
	event int // eventfd
}

// newPoller opens an epoll instance and its eventfd. EMFILE and ENFILE leave nothing open.
func newPoller() (Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("eventfd2", err), closeAll(fd))
	}
	p := &epoll{fd: fd, timer: -1, event: event, events: make([]unix.EpollEvent, eventsPerWait), far: time.Second, base: time.Now()}
	if err := p.addInternal(event, wakeTag); err != nil {
		return nil, errors.Join(err, closeAll(event, fd))
	}
	return p, nil
}

// closeAll closes fds, -1 being none.
func closeAll(fds ...int) (err error) {
	for _, fd := range fds {
		if fd >= 0 {
			err = errors.Join(err, os.NewSyscallError("close", unix.Close(fd)))
		}
	}
	return err
}

// addInternal watches one of the poller's own fds. Edge-triggered: every write or expiry is
// reported once without anybody reading the fd, which saves a read(2) per wake-up; the 64-bit
// counter does not overflow in a lifetime.
func (p *epoll) addInternal(fd int, tag uint64) error {
	e := epollEvent(0, tag)
	e.Events = unix.EPOLLIN | unix.EPOLLET
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e))
}

// epollEvent puts tag into the 64 bits that the kernel hands back as they are; x/sys calls them Fd
// and Pad.
func epollEvent(ev Events, tag uint64) unix.EpollEvent {
	return unix.EpollEvent{Events: uint32(ev & (Readable | Writable)), Fd: int32(uint32(tag)), Pad: int32(uint32(tag >> 32))}
}

func (p *epoll) Add(fd int, ev Events, tag uint64) error {
	e := epollEvent(ev, tag)
	return p.ctl(unix.EPOLL_CTL_ADD, fd, &e)
}

func (p *epoll) Modify(fd int, ev Events, tag uint64) error {
	e := epollEvent(ev, tag)
	return p.ctl(unix.EPOLL_CTL_MOD, fd, &e)
}

func (p *epoll) Remove(fd int) error { return p.ctl(unix.EPOLL_CTL_DEL, fd, nil) }

func (p *epoll) ctl(op, fd int, e *unix.EpollEvent) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, fd, e))
}

func (p *epoll) isWatched(fd int, ev Events, tag uint64) bool { return p.Modify(fd, ev, tag) == nil }

// findFD finds the number in the kernel's list of watched files: "tfd: 8 events: 19 data: 100000002
// pos:0 ...".
func (p *epoll) findFD(tag uint64) int {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(p.fd))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(info)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[0] != "tfd:" || f[5] != strconv.FormatUint(tag, 16) {
			continue
		}
		if n, err := strconv.Atoi(f[1]); err == nil {
			return n
		}
	}
	return -1
}

func (p *epoll) Wait(dst []Ready, timeout time.Duration) (int, error) {
	events := p.events[:min(len(dst), len(p.events))]
	if timeout >= p.far {
		timeout = p.farTimeout(timeout)
	}
	n, err := unix.EpollWait(p.fd, events, waitMillis(timeout))
	if err != nil {
		return 0, os.NewSyscallError("epoll_wait", err)
	}
	found := 0
	for i := range events[:n] {
		e := &events[i]
		tag := uint64(uint32(e.Pad))<<32 | uint64(uint32(e.Fd))
		if tag == wakeTag || tag == timerTag {
			continue
		}
		dst[found] = Ready{Tag: tag, Events: Events(e.Events) & (Readable | Writable | Hangup | Error)}
		found++
	}
	return found, nil
}

// farTimeout lets the timerfd end a long wait, and returns the time-out that epoll_wait still
// needs. A wait with a time-out starts and cancels a timer in the kernel each time, which adds 4 %
// to a round trip of messages. The timerfd is set once, however often the loop is woken until
// then. It may be set for an earlier time than this wait's, which then ends early.
func (p *epoll) farTimeout(timeout time.Duration) time.Duration {
	now := time.Since(p.base)
	switch at := now + timeout; {
	case p.hosted:
		return timeout
	case p.next <= now || p.next > at:
		if p.openTimer() != nil || p.armTimer(timeout) != nil {
			return timeout
		}
		p.next = at
	}
	return -1
}

// waitMillis returns epoll_wait's timeout in milliseconds. It is rounded up: rounded down, the loop
// would wake before the timer is due and spin until then.
func waitMillis(d time.Duration) int {
	if d < 0 {
		return -1
	}
	const longest = time.Hour // of the int's range; waking once an hour costs nothing
	return int((min(d, longest) + time.Millisecond - 1) / time.Millisecond)
}

// one is the eventfd's increment, a native uint64. The counter would overflow after 2^64 wake-ups.
var one = binary.NativeEndian.AppendUint64(nil, 1)

func (p *epoll) Wake() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.event < 0 {
		return nil
	}
	_, err := unix.Write(p.event, one)
	return os.NewSyscallError("write", err)
}

func (p *epoll) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := closeAll(p.timer, p.event, p.fd)
	p.timer, p.event, p.fd = -1, -1, -1
	return err
}

// embedFD opens the timerfd that makes the epoll fd readable for timers, and returns the epoll fd.
func (p *epoll) embedFD() (int, error) {
	if err := p.openTimer(); err != nil {
		return -1, err
	}
	p.hosted = true
	return p.fd, nil
}

// openTimer opens the timerfd, once.
func (p *epoll) openTimer() error {
	if p.timer >= 0 {
		return nil
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	if err := p.addInternal(timer, timerTag); err != nil {
		return errors.Join(err, closeAll(timer))
	}
	p.timer = timer
	return nil
}

// armTimer sets the timerfd d ahead; 0 means immediately, negative disarms. After Close it does
// nothing.
func (p *epoll) armTimer(d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer < 0 {
		return nil
	}
	var spec unix.ItimerSpec // all zero disarms
	if d >= 0 {
		spec.Value = unix.NsecToTimespec(max(int64(d), 1))
	}
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(p.timer, 0, &spec, nil))
}
