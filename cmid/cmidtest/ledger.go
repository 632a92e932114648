package cmidtest

import "sync"

// resource is a kind of object that is made and freed.
type resource string

const (
	resIdentifier resource = "identifier"
	resQP         resource = "queue pair"
	resCQ         resource = "completion queue"
	resSRQ        resource = "shared receive queue"
	resAH         resource = "address handle"
)

// ledger counts the objects that exist, by kind and by device. Identifiers are counted by host,
// because they need no device.
type ledger struct {
	mu sync.Mutex
	n  map[entry]int
}

type entry struct {
	what  resource
	where string
}

func (l *ledger) add(what resource, where string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := entry{what, where}
	if l.n[e] += n; l.n[e] == 0 {
		delete(l.n, e)
	}
}
