// Package flight is a flight recorder: the latest events on a loop, for the analysis of a fault.
//
// # Ownership
//
// A Recorder may be used by any goroutine. A mutex guards it, so that it can be read while its
// loop is blocked; a write under it takes some nanoseconds, and a read copies the ring.
//
// # Ordering
//
// Records are in the order in which they were made.
//
// # Errors
//
// There are none. A Recorder that is nil records nothing.
//
// # Limitations
//
// The ring has a fixed number of records, which are allocated with it. Texts are not copied, so
// they are to be constants: text that a peer or a user has made could be of any length.
package flight

import (
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// Recorder keeps the last records of one loop.
type Recorder struct {
	mu   sync.Mutex
	ring []record
	next int    // where the next record goes
	made uint64 // records ever
}

// record is one in the ring.
type record struct {
	at       int64 // Unix time in nanoseconds
	id       uint64
	what     string // a constant
	errno    int32
	kind     Kind
	from, to states.State // of a transition
}

// New makes a Recorder of n records; nil if there are to be none.
func New(n int) *Recorder {
	if n <= 0 {
		return nil
	}
	return &Recorder{ring: make([]record, n)}
}

// Transition records that id has left a state for another.
func (r *Recorder) Transition(at time.Time, id uint64, from, to states.State) {
	if r == nil {
		return
	}
	ns := at.UnixNano()
	r.mu.Lock()
	*r.nextSlot() = record{at: ns, id: id, kind: Transition, from: from, to: to}
	r.mu.Unlock()
}

// Note records something else. The text what is a constant; errno is 0 for none.
func (r *Recorder) Note(at time.Time, id uint64, k Kind, what string, errno int32) {
	if r == nil {
		return
	}
	ns := at.UnixNano()
	r.mu.Lock()
	*r.nextSlot() = record{at: ns, id: id, kind: k, what: what, errno: errno}
	r.mu.Unlock()
}

// nextSlot returns the place of the next record. The caller holds mu.
func (r *Recorder) nextSlot() *record {
	s := &r.ring[r.next]
	if r.next++; r.next == len(r.ring) {
		r.next = 0
	}
	r.made++
	return s
}

// Copy is the content of a Recorder at one moment.
type Copy struct {
	ring []record
	made uint64
}

// Copy copies the last n records, or all.
func (r *Recorder) Copy(n int) Copy {
	if r == nil {
		return Copy{}
	}
	ring := make([]record, 0, min(n, len(r.ring))) // now: the loop may wait for the lock
	r.mu.Lock()
	defer r.mu.Unlock()
	there := min(r.made, uint64(len(r.ring)), uint64(n))
	c := Copy{ring: ring, made: r.made}
	first := r.next - int(there)
	if first < 0 {
		c.ring = append(c.ring, r.ring[first+len(r.ring):]...)
		first = 0
	}
	c.ring = append(c.ring, r.ring[first:r.next]...)
	return c
}

// Records are the copy's, oldest first, and how many there were before them.
func (c Copy) Records() (records []Record, before uint64) {
	records = make([]Record, 0, len(c.ring))
	for _, r := range c.ring {
		rec := Record{At: time.Unix(0, r.at), ID: r.id, Kind: r.kind, What: r.what, Errno: r.errno}
		if r.kind == Transition {
			rec.What = r.from.String() + " -> " + r.to.String()
		}
		records = append(records, rec)
	}
	return records, c.made - uint64(len(c.ring))
}
