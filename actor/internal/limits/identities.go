package limits

import (
	"net/netip"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Person identifies a peer: by its identity, or by its address if it has none.
type Person struct {
	Identity string
	Address  netip.Addr
}

// Identities counts the connections of authenticated peers. The zero Identities has none. Any
// goroutine.
type Identities struct {
	mu     sync.Mutex
	places fairshare.Shares[Person]
	rates  fairshare.Rates[Person]
}

// May bounds all peers of one person together. Not positive: unbounded.
type May struct {
	Connections int // at a time
	ConnectRate int // in a second
	// Memory takes the memory for one more connection. Not ok: there is too little.
	Memory func() (ok bool)
}

// Take counts a connection of who, if there is room for it among most for all persons. 0: there
// was.
func (i *Identities) Take(who Person, may May, most int, now time.Time) wire.Refusal {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case may.Connections > 0 && i.places.Has(who) >= may.Connections,
		!i.places.May(who, most):
		return wire.RefusedConnections
	case !may.Memory():
		return wire.RefusedMemory
	case may.ConnectRate > 0 && !i.rates.Take(who, may.ConnectRate, now):
		return wire.RefusedConnects
	}
	i.places.Take(who)
	return 0
}

// Free releases a connection of who.
func (i *Identities) Free(who Person) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.places.Free(who)
}
