package actor

// flight is what a connection has posted and the device has not completed, oldest first. The number of a posting is its work request's
// ID. Postings complete in order, so a completion stands for those before it that were to complete in silence.
type flight struct {
	ring  []posting // a power of two of them
	head  uint32    // number of the oldest
	next  uint32    // number of the next
	quiet int       // posted since the last one that will tell
}

// posting is a work request of the send queue.
type posting struct {
	send  *outgoing // nil: something else, or answered already
	op    *oneSided // nil: no one-sided operation. Without a Send either it is a credit update
	chunk *chunk    // what a Send is sent from; nil: inline
}

func (f *flight) len() int { return int(f.next - f.head) }

func (f *flight) at(number uint32) *posting { return &f.ring[number&uint32(len(f.ring)-1)] }

// push adds a posting and gives its number.
func (f *flight) push(p posting) (number uint32) {
	if f.len() == len(f.ring) {
		old := *f
		f.ring = make([]posting, max(4, 2*len(old.ring)))
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
	*f.at(f.next) = posting{}
}

// pop takes the oldest, if it is not behind number.
func (f *flight) pop(number uint32) (p posting, ok bool) {
	if f.len() == 0 || int32(number-f.head) < 0 {
		return p, false
	}
	slot := f.at(f.head)
	p, *slot = *slot, posting{}
	f.head++
	return p, true
}
