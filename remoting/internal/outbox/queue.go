package outbox

import (
	"slices"

	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Queue holds the user messages that wait for a peer. The messages for most targets share one lane,
// in which frames fill quickly. A target has a separate lane while many bytes wait for it, or while
// the peer meters it. Lanes take turns, and a target's lane has room for as many bytes as are left
// for all others. So a slow or flooded target does not block the others. Like a Lane it has no
// mutex. It is no fairshare.Queue: most targets have no lane, and the frames that a target's lane
// takes over from the common one have to go in order.
type Queue struct {
	limit    int
	bytes    int // in all lanes
	reserved int
	packets  uint64 // made so far
	latest   uint64 // the number of the packet that has the latest record
	common   Lane
	shares   map[string]int // bytes in the common lane, by target, counted while it is long
	own      lanes
	ready    ring.Ring[*own] // lanes that may be taken from, in turn, and perhaps others
	ownTurn  bool
}

// Place is reserved room.
type Place struct {
	lane *own
	size int
}

const (
	// ownMost is the highest number of targets with separate lanes, and ownBytes the bound of their
	// names in bytes. Targets beyond that are not metered.
	ownMost  = 4096
	ownBytes = 256 << 10
	// partBytes is the cost of counting a target's bytes in the common lane, besides its name.
	partBytes = 96
	// Allowance is the number of bytes that Allow releases to a metered target, besides the rest of
	// a frame.
	Allowance = 4 * FrameBytes
)

// MakeQueue makes a queue in which so many bytes may wait.
func MakeQueue(limit int) Queue { return Queue{limit: limit, common: MakeLane(limit)} }

// Limit is how many bytes may wait.
func (q *Queue) Limit() int { return q.limit }

// Bytes is how many bytes wait, or were taken and have not gone.
func (q *Queue) Bytes() int { return q.bytes }

// Number is that of the packet that has the latest record.
func (q *Queue) Number() uint64 { return q.latest }

// heavyBytes returns how many bytes of one target may wait in the common lane.
func (q *Queue) heavyBytes() int { return max(q.limit/16, FrameBytes) }

// laneOf returns the lane of a target's next record.
func (q *Queue) laneOf(o *own) *Lane {
	if o == nil {
		return &q.common
	}
	return &o.Lane
}

// Room reports whether a record of this size may wait, too, beside those that room is reserved for.
func (q *Queue) Room(target string, size int) bool {
	o := q.own.of[target]
	if q.countsInShares(o) {
		size = q.withPart(target, size)
	}
	return q.hasRoom(o, size)
}

// countsInShares reports whether a record that is added to a lane counts in shares.
func (q *Queue) countsInShares(o *own) bool { return o == nil && q.common.bytes > q.heavyBytes() }

// withPart adds the cost of a part to a record's size.
func (q *Queue) withPart(target string, size int) int {
	return min(size+partBytes+len(target), max(size, q.limit))
}

func (q *Queue) hasRoom(o *own, size int) bool {
	has := 0
	if o != nil {
		has = o.bytes + o.reserved
	}
	return has+size <= q.limit-q.bytes-q.reserved
}

// Append adds a record, for which there must be room.
func (q *Queue) Append(r *frame.Record, size int) error {
	o := q.own.of[r.Target]
	counts := q.countsInShares(o)
	if counts && q.shares[r.Target]+size > q.heavyBytes() {
		o = q.addLane(r.Target)
		counts = o == nil
	}
	l := q.laneOf(o)
	before := l.bytes
	l.packets = &q.packets
	if err := l.Append(r, size); err != nil {
		q.removeIfUnused(o)
		return err
	}
	n := l.bytes - before
	q.bytes += n
	q.latest = l.number
	if counts {
		q.addShare(r.Target, n)
	}
	q.updateLane(o)
	return nil
}

// addShare counts bytes in the common lane as a target's.
func (q *Queue) addShare(target string, n int) {
	if q.shares == nil {
		q.shares = make(map[string]int)
	}
	q.shares[target] += n
	parts := q.common.open.parts
	if last := len(parts) - 1; last >= 0 && parts[last].target == target {
		parts[last].bytes += n
		return
	}
	q.common.open.parts = append(parts, part{target, n})
	q.bytes += partBytes + len(target)
}

// removeShares subtracts a packet's bytes from its targets' shares.
func (q *Queue) removeShares(p *Packet) {
	for _, part := range p.parts {
		q.bytes -= partBytes + len(part.target)
		if left := q.shares[part.target] - part.bytes; left > 0 {
			q.shares[part.target] = left
		} else {
			delete(q.shares, part.target)
		}
	}
}

// addLane makes a lane for a target; nil: there are too many.
func (q *Queue) addLane(target string) *own {
	return q.own.add(target, q.limit, q.common.number)
}

// removeIfUnused removes a target's lane that is not needed.
func (q *Queue) removeIfUnused(o *own) {
	if o != nil && o.place != nil && !o.metered && o.bytes == 0 && o.reserved == 0 && o.Waiters() == 0 {
		q.own.remove(o)
	}
}

// updateLane updates the lists after a change of a lane.
func (q *Queue) updateLane(o *own) {
	if o == nil {
		return
	}
	q.own.updateCounts(o)
	if !o.ready && o.mayTake() {
		o.ready = true
		q.ready.Push(o)
	}
}

// hasPassed reports whether the packets of the common lane up to that number were taken.
func (q *Queue) hasPassed(number uint64) bool {
	switch {
	case q.common.full.Len() > 0:
		return q.common.full.At(0).Number > number
	case !q.common.open.IsZero():
		return q.common.open.Number > number
	}
	return true
}

// Take takes the next frame. Its bytes count until it has gone.
func (q *Queue) Take() (p Packet, ok bool) {
	if q.ownTurn || q.common.Empty() {
		for range q.ready.Len() {
			o := q.ready.Pop()
			o.ready = false
			if !o.mayTake() {
				continue
			}
			if !q.hasPassed(o.after) {
				q.updateLane(o)
				continue
			}
			p, ok = o.Take()
			p.lane = o
			o.allowance -= len(p.Bytes())
			q.updateLane(o)
			q.ownTurn = false
			return p, ok
		}
	}
	q.ownTurn = true
	return q.common.Take()
}

// Back puts a frame back that Take has taken.
func (q *Queue) Back(p Packet) {
	q.laneOf(p.lane).Back(p)
	q.updateLane(p.lane)
}

// Gone removes a frame that was taken by Take from the count of bytes. It is the caller's to free.
func (q *Queue) Gone(p *Packet) {
	q.laneOf(p.lane).Gone(p)
	q.bytes -= len(p.Bytes())
	q.removeShares(p)
	q.removeIfUnused(p.lane)
}

// Empty reports whether nothing waits, apart from what Take has taken.
func (q *Queue) Empty() bool { return q.common.Empty() && q.own.filled == 0 }

// Ready reports whether there is something to take.
func (q *Queue) Ready() bool { return !q.common.Empty() || q.own.open > 0 }

// Records is how many records wait, apart from what Take has taken.
func (q *Queue) Records() (n int) {
	n = q.common.Records()
	for o := range q.own.all {
		n += o.Records()
	}
	return n
}

// Numbers is those of the packets that wait.
func (q *Queue) Numbers() map[uint64]bool {
	all := make(map[uint64]bool)
	q.common.addNumbers(all)
	for o := range q.own.all {
		o.addNumbers(all)
	}
	return all
}

// Each calls do for each queued record. Packets that Take has returned are not queued.
func (q *Queue) Each(do func(*frame.Record)) {
	q.common.eachRecord(do)
	for o := range q.own.all {
		o.eachRecord(do)
	}
}

// Filter drops the records that are not to be kept. A packet keeps its number, and disappears if it
// has no records left.
func (q *Queue) Filter(keep func(*frame.Record) bool) {
	q.common.eachPacket(q.removeShares)
	q.shares = nil
	q.filterLane(&q.common, keep)
	for o := range q.own.all {
		q.filterLane(&o.Lane, keep)
		q.updateLane(o)
		q.removeIfUnused(o)
	}
}

func (q *Queue) filterLane(l *Lane, keep func(*frame.Record) bool) {
	before := l.bytes
	l.Filter(keep)
	q.bytes += l.bytes - before
}

// Meter holds back a target's packets until Allow.
func (q *Queue) Meter(target string) {
	o := q.own.of[target]
	if o == nil {
		if o = q.addLane(target); o == nil {
			return
		}
	}
	o.metered, o.allowance = true, 0
	q.updateLane(o)
}

// Allow releases an Allowance of a metered target's packets.
func (q *Queue) Allow(target string) {
	if o := q.own.of[target]; o != nil && o.metered {
		o.allowance = Allowance
		q.updateLane(o)
	}
}

// Free ends Meter.
func (q *Queue) Free(target string) {
	if o := q.own.of[target]; o != nil {
		q.unmeterLane(o)
	}
}

func (q *Queue) unmeterLane(o *own) {
	o.metered = false
	q.updateLane(o)
	q.removeIfUnused(o)
}

// FreeAll ends Meter for all targets: the connection has ended.
func (q *Queue) FreeAll() {
	for o := range q.own.all {
		q.unmeterLane(o)
	}
}

// Wait queues a sender until there is room for so many bytes, which is then reserved: room is
// closed.
func (q *Queue) Wait(target string, size int) (room <-chan struct{}, at Place) {
	o := q.own.of[target]
	if o == nil { // it may count when its turn has come
		size = q.withPart(target, size)
	} else if o.Waiters() == 0 {
		q.own.blocked = append(q.own.blocked, o)
	}
	return q.laneOf(o).Wait(size), Place{o, size}
}

// Waits reports whether senders wait for room for a target's messages.
func (q *Queue) Waits(target string) bool { return q.laneOf(q.own.of[target]).Waiters() > 0 }

// Waiters is how many senders wait for room.
func (q *Queue) Waiters() (n int) {
	n = q.common.Waiters()
	for _, o := range q.own.blocked {
		n += o.Waiters()
	}
	return n
}

// Unreserve returns reserved room.
func (q *Queue) Unreserve(at Place) {
	q.laneOf(at.lane).reserved -= at.size
	q.reserved -= at.size
	q.removeIfUnused(at.lane)
}

// Release wakes the senders for which there is room now, or all of them: the queue is out of use.
func (q *Queue) Release(all bool) {
	q.releaseWaiters(nil, all)
	if len(q.own.blocked) == 0 {
		return
	}
	q.own.blocked = slices.DeleteFunc(q.own.blocked, func(o *own) bool {
		q.releaseWaiters(o, all)
		return o.Waiters() == 0
	})
}

func (q *Queue) releaseWaiters(o *own, all bool) {
	l := q.laneOf(o)
	for l.waiters.Len() > 0 {
		size := l.waiters.At(0).size
		if !all && !q.hasRoom(o, size) {
			return
		}
		l.reserved += size
		q.reserved += size
		close(l.waiters.Pop().room)
	}
}
