package cmidtest

import (
	"fmt"
	"slices"
	"sync"
)

// resource is a kind of thing that is made and given back.
type resource string

const (
	resIdentifier resource = "identifier"
	resQP         resource = "queue pair"
	resCQ         resource = "completion queue"
	resSRQ        resource = "shared receive queue"
	resMR         resource = "memory region"
	resPD         resource = "protection domain"
	resAH         resource = "address handle"
)

// ledger counts what exists, by kind and by where: a device, or a host for identifiers, which need
// no device.
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
	if l.n == nil {
		l.n = make(map[entry]int)
	}
	e := entry{what, where}
	if l.n[e] += n; l.n[e] == 0 {
		delete(l.n, e)
	}
}

// Left lists what was made and not given back, such as "2 memory regions on mem0", sorted:
// nothing, after programs that have ended as they should. It changes while loops run. Any
// goroutine.
func (f *Fabric) Left() []string {
	f.left.mu.Lock()
	defer f.left.mu.Unlock()
	var all []string
	for e, n := range f.left.n {
		s := ""
		if n != 1 {
			s = "s"
		}
		all = append(all, fmt.Sprintf("%d %s%s on %s", n, e.what, s, e.where))
	}
	slices.Sort(all)
	return all
}

// count notes that an identifier of the host was made or destroyed.
func (h *Host) count(n int) {
	h.f.left.add(resIdentifier, h.String(), n)
}

// String names the host in reports.
func (h *Host) String() string {
	if h.name == "" {
		return "the host"
	}
	return "the host " + h.name
}

// count notes that something of the device was made or given back.
func (d *device) count(what resource, n int) { d.host.f.left.add(what, d.name, n) }
