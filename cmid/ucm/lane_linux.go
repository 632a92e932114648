package ucm

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	idleWorkers = 8           // goroutines of a lane that stay when there is nothing to do
	atWork      = 64          // that there are while calls end
	mostWorkers = MaxConnects // whatever happens: Go ends a program with 10,000 threads
	stuckAfter  = 50 * time.Millisecond
)

// lane runs calls that may wait in the kernel, each on a thread of its own while it does. Calls beyond atWork wait in a queue. When none
// of those that are under way has ended for stuckAfter, more are begun: calls that nobody answers do not delay the others for longer.
type lane struct {
	mu            sync.Mutex
	more          sync.Cond // to the idle ones: there is work, or it is over
	queue         []*job
	workers, idle int
	begun         uint64
	watched       bool // grow will come
	stopped       bool
}

// job is a call. then is told its error, ECANCELED if it was not begun.
type job struct {
	call func() error
	then func(error)
}

func newLane() *lane {
	l := &lane{}
	l.more.L = &l.mu
	return l
}

// run has j executed.
func (l *lane) run(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, j)
	switch {
	case l.idle >= len(l.queue):
		l.more.Signal()
	case l.workers < atWork:
		l.hire()
	default:
		l.watch()
	}
}

func (l *lane) hire() {
	l.workers++
	go l.worker()
}

// watch has grow look whether somebody comes to the queue.
func (l *lane) watch() {
	if !l.watched {
		l.watched = true
		before := l.begun
		time.AfterFunc(stuckAfter, func() { l.grow(before) })
	}
}

func (l *lane) grow(before uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = false
	if l.begun == before {
		for range min(len(l.queue), atWork, mostWorkers-l.workers) {
			l.hire()
		}
	}
	if len(l.queue) > 0 {
		l.watch()
	}
}

func (l *lane) worker() {
	undisturbed()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.rest() {
		j := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.begun++
		l.mu.Unlock()
		j.then(j.call())
		l.mu.Lock()
	}
	l.workers--
}

// rest waits for work, and says whether there is any: else the goroutine ends.
func (l *lane) rest() bool {
	for len(l.queue) == 0 {
		if l.stopped || l.idle == idleWorkers {
			return false
		}
		l.idle++
		l.more.Wait()
		l.idle--
	}
	return true
}

// stop ends the idle goroutines; the others end with what there is to do.
func (l *lane) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.more.Broadcast()
}

// drop takes j out of the queue if it has not begun.
func (l *lane) drop(j *job) {
	l.mu.Lock()
	i := slices.Index(l.queue, j)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	l.mu.Unlock()
	if i >= 0 {
		j.then(unix.ECANCELED)
	}
}

// undisturbed gives the goroutine a thread of its own, which ends with it, and which no signal reaches. A signal would have the kernel
// break a wait off and begin the command again, and a CONNECT of soft-iWARP's that begins again fails (EADDRNOTAVAIL): it has bound its
// socket already. Go's scheduler sends signals to busy threads all the time.
func undisturbed() {
	runtime.LockOSThread()
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	for _, fault := range []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS} {
		all.Val[(fault-1)/64] &^= 1 << ((fault - 1) % 64) // those are the thread's own doing, and Go's panics
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &all, nil); err != nil {
		panic(err) // EINVAL alone is possible, and how is a constant
	}
}
