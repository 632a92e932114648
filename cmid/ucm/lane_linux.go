package ucm

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

const (
	idleWorkers = 8    // goroutines of a lane that stay when there is nothing to do
	atWork      = 64   // threads while calls end
	mostWorkers = 1024 // whatever happens: Go ends a program with 10,000 threads
	stuckAfter  = 50 * time.Millisecond
)

// lanes are the threads of the process that may wait in the kernel. Each kind of call has a
// separate lane, so that it cannot use up another kind's threads: connects to a host that does not
// answer do not delay accepts or destructions.
type lanes struct {
	connects, accepts, destroys lane
	budget                      budget
}

// process has all loops' calls: Go's limit of threads is the process's.
var process = lanes{budget: budget{measure: hostThreads}}

func (l *lanes) each(f func(*lane)) {
	for _, one := range []*lane{&l.connects, &l.accepts, &l.destroys} {
		f(one)
	}
}

// addUser and removeUser count the channels that may have calls. Without any, no goroutine stays
// idle.
func (l *lanes) addUser() {
	l.each(func(one *lane) { one.addUser(&l.budget) })
}
func (l *lanes) removeUser() { l.each((*lane).removeUser) }

// lane runs calls that may wait in the kernel, each on a separate thread. Calls beyond atWork wait
// in a queue, without a thread. When no call has ended for stuckAfter, others are started. So
// unanswered calls do not delay the others for longer than that. The budget of the lanes bounds
// the threads. It is asked off the loop, before threads are started.
//
// Threads are shared fairly (fairshare.Queue). A call belongs to a group (a listener, or a loop),
// and in it to a peer. A single group has at most half of the lane, two groups have a third each,
// and a single peer has at most a third of the lane. So a group or peer that has no thread yet
// finds one. A group without a call under way need not wait for stuckAfter.
type lane struct {
	mu            sync.Mutex
	more          *sync.Cond                 // to the idle ones: there is work, or it is over
	calls         fairshare.Queue[any, *job] // grouped, and within a group keyed by peer
	users         int                        // channels
	budget        *budget
	most          int // workers that the budget allows, as of the last time that it was asked
	workers, idle int
	begun         uint64
	watched       bool // growThreads will come
	filling       bool // startThreads will come
}

// job is a call. then gets its error: ECANCELED if it was not begun, a *ThreadsError if it was
// refused.
type job struct {
	group, peer any // the call's group and peer
	call        func() error
	then        func(error)
	refusable   bool // is not kept waiting if the process may have no thread
}

func (l *lane) addUser(b *budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget == nil { // it never changes, and needs no lock
		l.budget = b
	}
	l.users++
}

// removeUser ends the idle goroutines with the last user; the others end with what there is to do.
func (l *lane) removeUser() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	l.condLocked().Broadcast()
}

func (l *lane) condLocked() *sync.Cond {
	if l.more == nil {
		l.more = sync.NewCond(&l.mu)
	}
	return l.more
}

// runJob queues j for a thread.
func (l *lane) runJob(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls.Put(j, j.group, j.peer)
	if l.idle >= l.calls.Waiting() {
		l.condLocked().Signal()
		return
	}
	if !l.filling && (l.workers < atWork || l.calls.Unserved()) {
		l.filling = true
		go l.startThreads()
	}
	l.watchLocked()
}

// startThreads starts threads for the calls that wait: up to atWork, and then for groups that have
// no call under way, and those whose turn is before them.
func (l *lane) startThreads() {
	l.askBudget(func() {
		l.filling = false
		for l.workers < atWork && l.idle < l.calls.Waiting() && l.hireLocked() {
		}
		for l.calls.Unserved() && l.hireLocked() {
		}
	})
}

// askBudget asks the budget, and then executes hire with the lock held. If the budget allows no
// thread at all, the calls that cannot wait for one are refused.
func (l *lane) askBudget(hire func()) {
	most, err := l.budget.mostThreads()
	l.mu.Lock()
	l.most = most
	hire()
	l.watchLocked()
	var refused []*job
	if l.workers == 0 && most == 0 {
		refused = l.refuseLocked()
	}
	l.mu.Unlock()
	for _, j := range refused {
		j.then(err)
	}
}

// refuseLocked removes the refusable calls from the queue.
func (l *lane) refuseLocked() (refused []*job) {
	for j := range l.calls.All {
		if j.refusable {
			refused = append(refused, j)
		}
	}
	for _, j := range refused {
		l.dropLocked(j)
	}
	return refused
}

// hireLocked begins a call on a thread more, and reports whether there was one that may begin.
func (l *lane) hireLocked() bool {
	if l.workers >= l.most {
		return false
	}
	j := l.nextLocked()
	if j == nil {
		return false
	}
	l.workers++
	go l.runWorker(j)
	return true
}

// watchLocked starts the timer after which growThreads checks whether any queued call has begun.
func (l *lane) watchLocked() {
	if !l.watched && l.calls.Waiting() > 0 {
		l.watched = true
		before := l.begun
		time.AfterFunc(stuckAfter, func() { l.growThreads(before) })
	}
}

func (l *lane) growThreads(before uint64) {
	l.askBudget(func() {
		l.watched = false
		if l.begun != before {
			return
		}
		l.condLocked().Broadcast()
		for range atWork {
			if !l.hireLocked() {
				return
			}
		}
	})
}

func (l *lane) runWorker(j *job) {
	lockThread()
	l.budget.threads.Add(1)
	defer l.budget.threads.Add(-1)
	for j != nil {
		j.then(j.call())
		l.mu.Lock()
		l.calls.Done(j.group, j.peer)
		if j = l.awaitLocked(); j == nil {
			l.workers--
		}
		l.watchLocked() // one that has ended may let two begin
		l.mu.Unlock()
	}
}

// awaitLocked waits for a call that may begin. nil: the goroutine ends.
func (l *lane) awaitLocked() *job {
	for {
		if j := l.nextLocked(); j != nil {
			return j
		}
		if l.users <= 0 || l.idle >= idleWorkers {
			return nil
		}
		l.idle++
		l.condLocked().Wait()
		l.idle--
	}
}

// nextLocked begins the call whose turn it is, nil when none may begin.
func (l *lane) nextLocked() *job {
	j, ok := l.calls.Take(l.most - l.calls.Running())
	if ok {
		l.begun++
	}
	return j
}

// cancelJob takes j out of the queue if it has not begun.
func (l *lane) cancelJob(j *job) {
	l.mu.Lock()
	dropped := l.dropLocked(j)
	l.mu.Unlock()
	if dropped {
		j.then(unix.ECANCELED)
	}
}

func (l *lane) dropLocked(j *job) (dropped bool) {
	return l.calls.Drop(func(other *job) bool { return other == j }, j.group, j.peer)
}

// lockThread locks the goroutine to a thread, which ends with it, and blocks signals there. A
// signal would make the kernel break off a wait and start the command again. A CONNECT of
// soft-iWARP that is started again fails with EADDRNOTAVAIL, because it has bound its socket
// already. And Go's scheduler sends signals to busy threads all the time. One signal is not
// blocked: the one that makes all threads execute a system call (setuid), because the whole
// program would wait for this thread.
func lockThread() {
	runtime.LockOSThread()
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	const everyThread = 33 // Go's, and the C library's
	for _, open := range []unix.Signal{
		// the thread's own doing, and Go's panics
		unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS,
		everyThread,
	} {
		all.Val[(open-1)/64] &^= 1 << ((open - 1) % 64)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &all, nil); err != nil {
		panic(err) // EINVAL alone is possible, and how is a constant
	}
}
