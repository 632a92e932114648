package datapath

import "github.com/rdmactor/rdmactor/actor/internal/memory"

// flight is what a connection has posted and the device has not completed, oldest first. The
// number of a posting is its work request's ID. Postings complete in order, so a completion stands
// for those before it that were to complete in silence.
type flight struct {
	ring  []Posting // a power of two of them
	head  uint32    // number of the oldest
	next  uint32    // number of the next
	quiet int       // posted since the last one that will tell
}

// Posting is a work request of the send queue.
type Posting struct {
	Send  *Outgoing     // nil: something else, or answered already
	op    *OneSided     // nil: no one-sided operation. Without a Send either it is a credit update
	chunk *memory.Chunk // what a Send is sent from; nil: inline
}

// Len is how many there are.
func (f *flight) Len() int { return int(f.next - f.head) }

func (f *flight) at(number uint32) *Posting { return &f.ring[number&uint32(len(f.ring)-1)] }

// Push adds a posting and gives its number.
func (f *flight) Push(p Posting) (number uint32) {
	if f.Len() == len(f.ring) {
		old := *f
		f.ring = make([]Posting, max(4, 2*len(old.ring)))
		for n := old.head; n != old.next; n++ {
			*f.at(n) = *old.at(n)
		}
	}
	number = f.next
	f.next++
	*f.at(number) = p
	return number
}

// unpush takes the newest back: the device did not take it.
func (f *flight) unpush() {
	f.next--
	*f.at(f.next) = Posting{}
}

// pop takes the oldest, if it is not behind number.
func (f *flight) pop(number uint32) (p Posting, ok bool) {
	if f.Len() == 0 || int32(number-f.head) < 0 {
		return p, false
	}
	slot := f.at(f.head)
	p, *slot = *slot, Posting{}
	f.head++
	return p, true
}
