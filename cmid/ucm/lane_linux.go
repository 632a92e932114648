package ucm

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	idleWorkers = 8    // goroutines of a lane that stay when there is nothing to do
	atWork      = 64   // that there are while calls end
	mostWorkers = 1024 // whatever happens: Go ends a program with 10,000 threads
	stuckAfter  = 50 * time.Millisecond
)

// lanes are the threads of the process that may wait in the kernel. Each kind of call has a lane
// of its own, so that it cannot use up another kind's threads: connects to a host that does not
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

// join and leave count the channels that may have calls. Without any, no goroutine stays idle.
func (l *lanes) join() {
	l.each(func(one *lane) { one.join(&l.budget) })
}
func (l *lanes) leave() { l.each((*lane).leave) }

// lane runs calls that may wait in the kernel, each on a thread of its own. Calls beyond atWork
// wait in a queue, without a thread. When no call has ended for stuckAfter, more are started. So
// calls that nobody answers do not delay the others for longer than that. The budget of the lanes
// bounds the threads. It is asked off the loop, before threads are started.
//
// Threads are shared fairly. A call belongs to a group (a listener, or a loop), and in it to a
// peer. Groups take turns, and so do the peers of a group. A group has at most as many calls under
// way as threads are left for all others: a single group has at most half of the lane, two groups
// have a third each. Within a group the same holds for a peer and the calls that the group may
// still begin: a single peer has at most a third of the lane. So a group or peer that has no
// thread yet finds one. A group without a call under way need not wait for stuckAfter.
type lane struct {
	mu            sync.Mutex
	more          *sync.Cond // to the idle ones: there is work, or it is over
	all           share      // its parts are the groups, theirs are the peers
	users         int        // channels
	budget        *budget
	most          int // workers that the budget allows, as of the last time that it was asked
	workers, idle int
	begun         uint64
	watched       bool // grow will come
	filling       bool // fill will come
}

// share is what a group, or a peer in it, has of a lane.
type share struct {
	waiting, running int
	parts            map[any]*share
	turns            []*share // the parts with calls that wait, in the order of their turns
	jobs             []*job   // of a peer
}

// job is a call. then gets its error: ECANCELED if it was not begun, a *ThreadsError if it was
// refused.
type job struct {
	group, peer any // that it is for
	call        func() error
	then        func(error)
	refusable   bool // is not kept waiting if the process may have no thread

	at [3]*share // once it is queued
}

func (l *lane) join(b *budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget == nil { // it never changes, and needs no lock
		l.budget = b
	}
	l.users++
}

// leave ends the idle goroutines with the last user; the others end with what there is to do.
func (l *lane) leave() {
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

// run has j executed.
func (l *lane) run(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.put(j)
	if l.idle >= l.all.waiting {
		l.condLocked().Signal()
		return
	}
	if !l.filling && (l.workers < atWork || j.at[1].running == 0) {
		l.filling = true
		go l.fill()
	}
	l.watchLocked()
}

// fill starts threads for the calls that wait: up to atWork, and then for groups that have no call
// under way, and those whose turn is before them.
func (l *lane) fill() {
	l.ask(func() {
		l.filling = false
		for l.workers < atWork && l.idle < l.all.waiting && l.hireLocked() {
		}
		for slices.ContainsFunc(l.all.turns, func(group *share) bool { return group.running == 0 }) && l.hireLocked() {
		}
	})
}

// ask asks the budget, and then executes hire with the lock held. If the budget allows no thread at
// all, the calls that cannot wait for one are refused.
func (l *lane) ask(hire func()) {
	most, err := l.budget.ask()
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
	for _, group := range l.all.parts {
		for _, peer := range group.parts {
			for _, j := range peer.jobs {
				if j.refusable {
					refused = append(refused, j)
				}
			}
		}
	}
	for _, j := range refused {
		l.all.drop(j)
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
	go l.worker(j)
	return true
}

// watchLocked has grow look whether somebody comes to the queue.
func (l *lane) watchLocked() {
	if !l.watched && l.all.waiting > 0 {
		l.watched = true
		before := l.begun
		time.AfterFunc(stuckAfter, func() { l.grow(before) })
	}
}

func (l *lane) grow(before uint64) {
	l.ask(func() {
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

func (l *lane) worker(j *job) {
	undisturbed()
	l.budget.threads.Add(1)
	defer l.budget.threads.Add(-1)
	for j != nil {
		j.then(j.call())
		l.mu.Lock()
		l.all.end(j)
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
	j := l.all.next(l.most - l.all.running)
	if j != nil {
		l.begun++
	}
	return j
}

// drop takes j out of the queue if it has not begun.
func (l *lane) drop(j *job) {
	l.mu.Lock()
	dropped := l.all.drop(j)
	l.mu.Unlock()
	if dropped {
		j.then(unix.ECANCELED)
	}
}

// part is the share of the group, or peer, with that key.
func (s *share) part(key any) *share {
	p := s.parts[key]
	if p == nil {
		if s.parts == nil {
			s.parts = make(map[any]*share)
		}
		p = &share{}
		s.parts[key] = p
	}
	return p
}

// put queues j.
func (s *share) put(j *job) {
	group := s.part(j.group)
	peer := group.part(j.peer)
	j.at = [3]*share{s, group, peer}
	peer.jobs = append(peer.jobs, j)
	for i, p := range j.at {
		p.waiting++
		if p.waiting == 1 && i > 0 {
			j.at[i-1].turns = append(j.at[i-1].turns, p)
		}
	}
}

// next takes the oldest job of the part whose turn it is, among the parts that have less under way
// than is left for all others.
func (s *share) next(left int) *job {
	if len(s.jobs) > 0 {
		j := s.jobs[0]
		s.jobs[0] = nil
		s.jobs = s.jobs[1:]
		s.waiting--
		s.running++
		return j
	}
	for i, p := range s.turns {
		room := left - p.running
		if room <= 0 {
			continue
		}
		if j := p.next(room); j != nil {
			s.waiting--
			s.running++
			s.turns = slices.Delete(s.turns, i, i+1)
			if p.waiting > 0 {
				s.turns = append(s.turns, p)
			}
			return j
		}
	}
	return nil
}

// end is the end of a job that was begun.
func (s *share) end(j *job) {
	for _, p := range j.at {
		p.running--
	}
	s.tidy(j)
}

// drop takes j back if it was not begun.
func (s *share) drop(j *job) bool {
	peer := j.at[2]
	i := slices.Index(peer.jobs, j)
	if i < 0 {
		return false
	}
	peer.jobs = slices.Delete(peer.jobs, i, i+1)
	for i, p := range j.at {
		p.waiting--
		if p.waiting == 0 && i > 0 {
			j.at[i-1].turns = slices.DeleteFunc(j.at[i-1].turns, func(other *share) bool { return other == p })
		}
	}
	s.tidy(j)
	return true
}

// tidy forgets a peer, and a group, that has nothing any more.
func (s *share) tidy(j *job) {
	if p := j.at[2]; p.running+p.waiting == 0 {
		delete(j.at[1].parts, j.peer)
	}
	if p := j.at[1]; p.running+p.waiting == 0 {
		delete(s.parts, j.group)
	}
}

// undisturbed gives the goroutine a thread of its own, which ends with it, and blocks signals
// there. A signal would make the kernel break off a wait and start the command again. A CONNECT of
// soft-iWARP that is started again fails with EADDRNOTAVAIL, because it has bound its socket
// already. And Go's scheduler sends signals to busy threads all the time. One signal is not
// blocked: the one that makes all threads execute a system call (setuid), because the whole
// program would wait for this thread.
func undisturbed() {
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
