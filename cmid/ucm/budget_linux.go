package ucm

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hostlimits"
)

const (
	spareThreads = 8 // left to the Go runtime, whatever else the process has
	kinds        = 3 // of lanes
	// budgetAge is how old the budget may be before it is computed again.
	budgetAge = 10 * time.Millisecond
)

// budget bounds the threads of all lanes by the limits of the process: pids.max of its control
// groups, RLIMIT_NPROC, the machine's own limits. The Go runtime ends a process that cannot start
// a thread ("newosproc"). So the lanes have half of the threads that are free, and share them
// equally. The other half is for the runtime, and for other processes under the same limit.
type budget struct {
	measure func() (hostlimits.Limit, bool) // nil: nothing limits them
	threads atomic.Int64                    // of the lanes, once they are started

	mu   sync.Mutex
	at   time.Time // when most was computed
	most int       // of a lane
	err  error     // why it is none
}

// hostThreads returns what limits this process's threads.
func hostThreads() (hostlimits.Limit, bool) { return hostlimits.Threads(os.DirFS("/")) }

// mostThreads returns how many threads a lane may have now, and if that is none, why. It reads
// files, and is not for loops.
func (b *budget) mostThreads() (most int, err error) {
	if b.measure == nil {
		return mostWorkers, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.at.IsZero() || now.Sub(b.at) > budgetAge {
		b.at = now
		b.most, b.err = b.computeMost()
	}
	return b.most, b.err
}

func (b *budget) computeMost() (int, error) {
	limit, ok := b.measure()
	if !ok {
		return mostWorkers, nil
	}
	own, left := int(b.threads.Load()), int(min(limit.Left(), 1<<30))
	all := (own + max(left-spareThreads, 0)) / 2
	if all == 0 {
		return 0, &ThreadsError{Limit: limit.String(), Err: unix.EAGAIN}
	}
	return min((all+kinds-1)/kinds, mostWorkers), nil
}
