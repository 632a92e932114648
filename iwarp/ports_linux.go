package iwarp

import (
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// ports is who has which TCP port in this process, over all loops, by the rules of rdma_cm. The
// host's own rules come on top: a bound socket has the port as well.
var ports = portTable{taken: make(map[uint16][]*binding)}

type portTable struct {
	mu    sync.Mutex
	taken map[uint16][]*binding
}

// binding is one identifier's claim to an address and port.
type binding struct {
	addr   cmid.Addr
	reuse  bool
	afonly bool
}

// anyAddr says whether rdma_cm treats a like a wildcard in conflicts, which it does with loopback.
func anyAddr(a netip.Addr) bool {
	a = a.WithZone("")
	return a.IsUnspecified() || a.IsLoopback()
}

// conflict is why b and other cannot have the same port. With REUSEADDR on both they can, but not
// to listen.
func (b *binding) conflict(other *binding, listening bool) error {
	one, two := b.addr.Addr(), other.addr.Addr()
	switch {
	case !listening && b.reuse && other.reuse:
		return nil
	case b.only() && other.only() && one.Is4() != two.Is4():
		return nil
	case anyAddr(one) || anyAddr(two):
		return cmid.ErrPortTaken
	case one == two:
		return unix.EADDRINUSE
	}
	return nil
}

// only: an IPv4 identifier is AFONLY by nature.
func (b *binding) only() bool { return b.afonly || b.addr.Addr().Is4() }

// checkLocked is nil when nobody is in b's way.
func (t *portTable) checkLocked(b *binding, listening bool) error {
	for _, other := range t.taken[b.addr.Port()] {
		if other == b {
			continue
		}
		if err := b.conflict(other, listening); err != nil {
			return fmt.Errorf("iwarp: port %d belongs to another identifier of this process, bound to %v: %w", b.addr.Port(), other.addr, err)
		}
	}
	return nil
}

// take enters b: ErrPortTaken, EADDRINUSE.
func (t *portTable) take(b *binding) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkLocked(b, false); err != nil {
		return err
	}
	t.taken[b.addr.Port()] = append(t.taken[b.addr.Port()], b)
	return nil
}

// listens checks again, as rdma_listen does: nobody else may have the port.
func (t *portTable) listens(b *binding) error {
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

// release takes b out; nil is nothing.
func (t *portTable) release(b *binding) {
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
