package limits

import (
	"net/netip"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Person is who a peer is: an identity, or the address of somebody who has none.
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

// May is what all peers of one person may have. What is not positive is not bounded here.
type May struct {
	Connections int // at a time
	ConnectRate int // in a second
	// Memory takes the memory for one more connection. Not ok: there is too little.
	Memory func() (ok bool)
}

// Take counts a connection of who's if there is room for it, with most for all persons; 0: there
// is.
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

// Free takes one back.
func (i *Identities) Free(who Person) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.places.Free(who)
}
