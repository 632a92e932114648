package iwarp

import (
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// ports is the table of this process.
var ports = newPortTable()

// portTable records which identifier has which TCP port in a process, on all loops, by the rules of
// rdma_cm. The host's rules apply in addition, because a bound socket also has the port.
type portTable struct {
	mu    sync.Mutex
	taken map[uint16][]*binding
}

func newPortTable() *portTable { return &portTable{taken: make(map[uint16][]*binding)} }

// binding is one identifier's claim to an address and port.
type binding struct {
	addr   cmid.Addr
	reuse  bool
	afonly bool
}

// anyAddr reports whether rdma_cm treats a like a wildcard in conflicts. Loopback addresses are
// treated so too.
func anyAddr(a netip.Addr) bool {
	a = a.WithZone("")
	return a.IsUnspecified() || a.IsLoopback()
}

// conflictWith returns the reason why b and other cannot have the same port, or nil. With REUSEADDR
// on both they can share it, but not for listening.
func (b *binding) conflictWith(other *binding, listening bool) error {
	one, two := b.addr.Addr(), other.addr.Addr()
	switch {
	case !listening && b.reuse && other.reuse:
		return nil
	case b.hasAFOnly() && other.hasAFOnly() && one.Is4() != two.Is4():
		return nil
	case anyAddr(one) || anyAddr(two):
		return cmid.ErrPortTaken
	case one == two:
		return unix.EADDRINUSE
	}
	return nil
}

// hasAFOnly reports whether b has AFONLY. An IPv4 identifier always has it.
func (b *binding) hasAFOnly() bool { return b.afonly || b.addr.Addr().Is4() }

// checkLocked returns nil if b conflicts with no other binding.
func (t *portTable) checkLocked(b *binding, listening bool) error {
	for _, other := range t.taken[b.addr.Port()] {
		if other == b {
			continue
		}
		if err := b.conflictWith(other, listening); err != nil {
			return fmt.Errorf("iwarp: port %d belongs to another identifier of this process, bound to %v: %w", b.addr.Port(), other.addr, err)
		}
	}
	return nil
}

// takePort adds b to the table. It may fail with ErrPortTaken or EADDRINUSE.
func (t *portTable) takePort(b *binding) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkLocked(b, false); err != nil {
		return err
	}
	t.taken[b.addr.Port()] = append(t.taken[b.addr.Port()], b)
	return nil
}

// checkListen repeats the check for listening, as rdma_listen does: no other identifier may have
// the port.
func (t *portTable) checkListen(b *binding) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.checkLocked(b, true)
}

func (t *portTable) setReuse(b *binding, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.reuse = on
}

func (t *portTable) setAFOnly(b *binding, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.afonly = on
}

// releasePort removes b from the table. b may be nil.
func (t *portTable) releasePort(b *binding) {
	if b == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	port := b.addr.Port()
	list := t.taken[port]
	for i, other := range list {
		if other == b {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(t.taken, port)
		return
	}
	t.taken[port] = list
}
