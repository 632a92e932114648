package limits

import (
	"net/netip"
	"sync"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Strangers counts peers that are not authenticated, by their addresses. The zero Strangers has
// none. Any goroutine.
type Strangers struct {
	mu     sync.Mutex
	places fairshare.Places
}

// Take counts one from a, with most for all. Not ok: there are too many, or too many from there.
func (s *Strangers) Take(a netip.Addr, most int) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.places.May(a, most) {
		return false
	}
	s.places.Take(a)
	return true
}

// Free takes one back.
func (s *Strangers) Free(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places.Free(a)
}
