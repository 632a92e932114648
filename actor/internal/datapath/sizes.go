package datapath

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// sizes bounds the messages of a connection, in bytes. Its peer's receives may change their size
// (resize.go), so it also follows which of them the next message uses. Other code only reads its
// fields.
type sizes struct {
	largest int    // maximum that the peer takes
	hello   int    // the peer's limit by its hello; 0: it has sent none
	direct  int    // maximum that is sent directly; larger messages are offered
	takes   int    // maximum that the peer may offer
	most    int    // upper bound of direct, however large the peer's receives are
	next    int    // capacity of the peer's receives from Send number from on; 0: no change is due
	from    uint32 // see next
	used    uint32 // receives that Sends and Writes with an immediate have used up
	offers  bool   // this side can offer messages that the peer's receives do not hold
	serves  bool   // the peer may read from this side
}

// initLargest sets the size of the largest message before the peer's hello is known.
func (s *sizes) initLargest(largest int) { s.largest, s.direct = largest, largest }

// setGranted sets the sizes that this side's hello grants to the peer. Until the peer's hello is
// known they also bound the messages that this side sends.
func (s *sizes) setGranted(h wire.Hello) { s.takes, s.direct = h.MaxMessage, h.Eager }

// expectsOffers reports, before the peer's hello is known, whether the peer may offer messages.
func (s *sizes) expectsOffers() bool { return s.takes > s.direct }

// agreeHello applies the peer's hello. most is the largest message that this side sends directly,
// budget bounds the memory that it offers from. offers: this side can offer messages.
func (s *sizes) agreeHello(h wire.Hello, t *Terms, most, budget int, offers bool) {
	s.most, s.direct, s.offers, s.serves = most, min(most, h.Eager), offers, t.Serves
	s.largest, s.hello = h.MaxMessage, h.MaxMessage
	if !offers {
		s.largest = min(s.largest, s.direct)
	}
	// a larger one would wait forever
	if t.regionSize(s.largest) > budget {
		s.largest = min(s.largest, max(min(s.direct, LeastPosted), t.largestFitting(budget)))
	}
}

// agreeBare applies the device's limit where the peer sends no hello; 0: none.
func (s *sizes) agreeBare(limit int) {
	if limit > 0 {
		s.direct = min(s.direct, limit)
	}
	s.largest = s.direct
}

// tooLarge returns the error for a message of n bytes. It names the field that sets the limit.
func (s *sizes) tooLarge(n int) error {
	field := "Limits.SendMemory"
	switch {
	case s.hello == 0:
		field = "IDConfig.MaxSend"
	case !s.serves:
		field = "ConnParam.ResponderResources, for the peer reads larger ones"
	case s.largest == s.hello:
		field = "the peer's IDConfig.MaxMessage"
	}
	return fmt.Errorf("%d bytes, and at most %d can be sent (%s): %w (%w)", n, s.largest, field, ErrTooLarge, unix.EMSGSIZE)
}

// countPosted counts an operation that the device took, if it uses up a receive of the peer.
func (s *sizes) countPosted(op verbs.Opcode) {
	if op != verbs.Send && op != verbs.WriteWithImm {
		return
	}
	if s.used++; s.next > 0 && s.used == s.from {
		s.setDirect(s.next)
	}
}

// setDirect makes messages of up to n bytes go directly: the peer's receives hold them.
func (s *sizes) setDirect(n int) {
	s.direct, s.next = n, 0
	if !s.offers {
		s.largest = n
	}
}

// takeReceives applies the peer's announcement of its receives. From the next header on the peer
// may rely on it.
func (s *sizes) takeReceives(r wire.Receives) error {
	n := min(int(min(r.Size, wire.MaxEager)), s.most)
	switch {
	case n < s.direct && !s.offers:
		return &wire.ProtocolError{What: "receives that become smaller, to a side that offers nothing"}
	case n > s.direct && int32(r.From-s.used) > 0:
		s.from, s.next = r.From, n
		return nil
	}
	s.setDirect(n)
	return nil
}
