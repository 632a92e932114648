package live

import (
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

// recentFor is the minimum age at which the recent calls start. While the page is read, they start
// at most twice that far back.
const recentFor = 10 * time.Second

// Recent makes P50 and P99 of methods those of the last 10 to 20 s: over all calls since the start
// a recent slowdown would not show. The first reader, and one after a pause, gets the values of all
// calls until then. Any goroutine.
type Recent struct {
	mu           sync.Mutex
	older, newer reading
}

// reading is the counts of each method at a time.
type reading struct {
	at        time.Time
	latencies map[string]rpc.Histogram
}

// Of replaces the percentiles in infos, which Inspect has returned, and returns infos.
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
