package live

import (
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

// recentFor is how far back what is recent begins, at least. It is at most twice that while
// somebody looks.
const recentFor = 10 * time.Second

// Recent makes P50 and P99 of methods those of the last 10 to 20 s: over all calls since the start
// nobody would see that something has become slow. Who looks for the first time, or after a pause,
// sees all that was counted until then. Any goroutine.
type Recent struct {
	mu           sync.Mutex
	older, newer reading
}

// reading is what was counted of each method.
type reading struct {
	at        time.Time
	latencies map[string]rpc.Histogram
}

// Of changes infos, which Inspect has returned, and returns them.
func (r *Recent) Of(infos []rpc.MethodInfo) []rpc.MethodInfo { return r.at(time.Now(), infos) }

func (r *Recent) at(now time.Time, infos []rpc.MethodInfo) []rpc.MethodInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.older.at) > 2*recentFor {
		r.older = r.newer
	}
	latest := reading{now, make(map[string]rpc.Histogram, len(infos))}
	for i := range infos {
		m := &infos[i]
		latest.latencies[m.Method] = m.Latency
		before := r.older.latencies[m.Method]
		m.Latency = m.Latency.Since(&before)
		m.P50, m.P99 = m.Latency.Quantile(0.5), m.Latency.Quantile(0.99)
	}
	if now.Sub(r.newer.at) >= recentFor {
		r.newer = latest
	}
	return infos
}
