package outbox

import (
	"slices"

	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Queue is the user messages that wait for a peer. The messages for most targets share one lane, in
// which frames fill quickly. A target has a lane of its own while much waits for it, or while the
// peer meters what it is sent. Lanes take turns, and a target's lane has room for as many bytes as
// are left for all others. So a target that is slow, or is sent too much, does not keep the others
// from being sent anything. Like a Lane it has no mutex.
type Queue struct {
	limit    int
	bytes    int // in all lanes
	reserved int
	packets  uint64 // made so far
	latest   uint64 // the number of the packet that has the latest record
	common   Lane
	shares   map[string]int // bytes in common for each target, of what was put while much waited
	own      map[string]*own
	lanes    []*own          // all of own, oldest first
	names    int             // the bytes of their names
	ready    ring.Ring[*own] // those that may be taken from, in turn, and perhaps others
	ownTurn  bool
}

// own is the lane of one target.
type own struct {
	Lane
	target    string
	after     uint64 // packets of the common lane with a number up to this one go first
	metered   bool
	allowance int // bytes that may be taken while it is metered
	ready     bool
}

// Place is where room is reserved.
type Place struct{ lane *own }

const (
	// ownMost is how many targets have lanes of their own, and ownBytes how many bytes their names
	// have. Targets beyond that are not metered.
	ownMost  = 4096
	ownBytes = 256 << 10
	// Allowance is how many bytes Allow lets a metered target be sent, and what is left of a frame.
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

// heavy is how many bytes of one target may wait in the common lane.
func (q *Queue) heavy() int { return max(q.limit/16, FrameBytes) }

// lane is where a target's next record waits.
func (q *Queue) lane(o *own) *Lane {
	if o == nil {
		return &q.common
	}
	return &o.Lane
}

// Room reports whether a record of this size may wait, too, beside those that room is reserved for.
func (q *Queue) Room(target string, size int) bool { return q.room(q.own[target], size) }

func (q *Queue) room(o *own, size int) bool {
	left := q.limit - q.bytes - q.reserved
	if size > left || o == nil {
		return size <= left
	}
	has := o.bytes + o.reserved
	return has == 0 || has+size <= left
}

// Append adds a record, for which there must be room.
func (q *Queue) Append(r *frame.Record, size int) error {
	o := q.own[r.Target]
	counts := o == nil && q.common.bytes > q.heavy()
	if counts && q.shares[r.Target]+size > q.heavy() {
		o = q.separate(r.Target)
		counts = o == nil
	}
	l := q.lane(o)
	before := l.bytes
	l.packets = &q.packets
	if err := l.Append(r, size); err != nil {
		q.tidy(o)
		return err
	}
	n := l.bytes - before
	q.bytes += n
	q.latest = l.number
	if counts {
		q.count(r.Target, n)
	}
	q.makeReady(o)
	return nil
}

// count counts bytes in the common lane as a target's.
func (q *Queue) count(target string, n int) {
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
}

// discount does the reverse for a packet.
func (q *Queue) discount(p *Packet) {
	for _, part := range p.parts {
		if left := q.shares[part.target] - part.bytes; left > 0 {
			q.shares[part.target] = left
		} else {
			delete(q.shares, part.target)
		}
	}
}

// separate gives a target a lane of its own; nil: there are too many.
func (q *Queue) separate(target string) *own {
	if len(q.lanes) >= ownMost || q.names+len(target) > ownBytes {
		return nil
	}
	o := &own{Lane: MakeLane(q.limit), target: target, after: q.common.number}
	if q.own == nil {
		q.own = make(map[string]*own)
	}
	q.own[target] = o
	q.lanes = append(q.lanes, o)
	q.names += len(target)
	return o
}

// tidy takes a target's lane away that it does not need.
func (q *Queue) tidy(o *own) {
	if o == nil || o.metered || o.bytes > 0 || o.reserved > 0 || o.Waiters() > 0 || q.own[o.target] != o {
		return
	}
	delete(q.own, o.target)
	q.names -= len(o.target)
	q.lanes = slices.DeleteFunc(q.lanes, func(l *own) bool { return l == o })
}

// may reports whether a lane may be taken from, as far as its target is concerned.
func (o *own) may() bool { return !o.Empty() && (!o.metered || o.allowance > 0) }

func (q *Queue) makeReady(o *own) {
	if o != nil && !o.ready && o.may() {
		o.ready = true
		q.ready.Push(o)
	}
}

// passed reports whether the packets of the common lane up to that number were taken.
func (q *Queue) passed(number uint64) bool {
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
			if !o.may() {
				continue
			}
			if !q.passed(o.after) {
				q.makeReady(o)
				continue
			}
			p, ok = o.Take()
			p.lane = o
			o.allowance -= len(p.Bytes())
			q.makeReady(o)
			q.ownTurn = false
			return p, ok
		}
	}
	q.ownTurn = true
	return q.common.Take()
}

// Back puts a frame back that Take has taken.
func (q *Queue) Back(p Packet) {
	q.lane(p.lane).Back(p)
	q.makeReady(p.lane)
}

// Gone says that a frame that Take has taken does not wait any more. It is the caller's to free.
func (q *Queue) Gone(p *Packet) {
	q.lane(p.lane).Gone(p)
	q.bytes -= len(p.Bytes())
	q.discount(p)
	q.tidy(p.lane)
}

// Empty reports whether nothing waits, apart from what Take has taken.
func (q *Queue) Empty() bool {
	return q.common.Empty() && !slices.ContainsFunc(q.lanes, func(o *own) bool { return !o.Empty() })
}

// Ready reports whether there is something to take.
func (q *Queue) Ready() bool {
	return !q.common.Empty() || len(q.lanes) > 0 && slices.ContainsFunc(q.lanes, (*own).may)
}

// Records is how many records wait, apart from what Take has taken.
func (q *Queue) Records() (n int) {
	n = q.common.Records()
	for _, o := range q.lanes {
		n += o.Records()
	}
	return n
}

// Numbers is those of the packets that wait.
func (q *Queue) Numbers() map[uint64]bool {
	all := make(map[uint64]bool)
	q.common.numbers(all)
	for _, o := range q.lanes {
		o.numbers(all)
	}
	return all
}

// Each calls do for each queued record. Packets that Take has returned are not queued.
func (q *Queue) Each(do func(*frame.Record)) {
	q.common.each(do)
	for _, o := range q.lanes {
		o.each(do)
	}
}

// Filter drops the records that are not to be kept. A packet keeps its number, and is none any more
// if it has no records left.
func (q *Queue) Filter(keep func(*frame.Record) bool) {
	q.shares = nil
	q.filter(&q.common, keep)
	for _, o := range slices.Clone(q.lanes) {
		q.filter(&o.Lane, keep)
		q.tidy(o)
	}
}

func (q *Queue) filter(l *Lane, keep func(*frame.Record) bool) {
	before := l.bytes
	l.Filter(keep)
	q.bytes += l.bytes - before
}

// Meter has nothing taken for a target but what Allow lets.
func (q *Queue) Meter(target string) {
	o := q.own[target]
	if o == nil {
		if o = q.separate(target); o == nil {
			return
		}
	}
	o.metered, o.allowance = true, 0
}

// Allow lets a metered target be sent an Allowance.
func (q *Queue) Allow(target string) {
	if o := q.own[target]; o != nil && o.metered {
		o.allowance = Allowance
		q.makeReady(o)
	}
}

// Free ends Meter.
func (q *Queue) Free(target string) {
	if o := q.own[target]; o != nil {
		o.metered = false
		q.makeReady(o)
		q.tidy(o)
	}
}

// FreeAll ends Meter for all targets: the connection has ended.
func (q *Queue) FreeAll() {
	for _, o := range slices.Clone(q.lanes) {
		q.Free(o.target)
	}
}

// Wait has a sender wait until there is room for so many bytes, which is reserved then: room is
// closed.
func (q *Queue) Wait(target string, size int) (room <-chan struct{}, at Place) {
	o := q.own[target]
	return q.lane(o).Wait(size), Place{o}
}

// Waits reports whether senders wait for room for a target's messages.
func (q *Queue) Waits(target string) bool { return q.lane(q.own[target]).Waiters() > 0 }

// Waiters is how many senders wait for room.
func (q *Queue) Waiters() (n int) {
	n = q.common.Waiters()
	for _, o := range q.lanes {
		n += o.Waiters()
	}
	return n
}

// Unreserve gives back what is reserved for one that was let go on.
func (q *Queue) Unreserve(at Place, size int) {
	q.lane(at.lane).Unreserve(size)
	q.reserved -= size
	q.tidy(at.lane)
}

// Release lets those go on who have room now, or all of them: the queue is of no more use.
func (q *Queue) Release(all bool) {
	q.release(nil, all)
	for _, o := range q.lanes {
		q.release(o, all)
	}
}

func (q *Queue) release(o *own, all bool) {
	l := q.lane(o)
	for l.waiters.Len() > 0 {
		size := l.waiters.At(0).size
		if !all && !q.room(o, size) {
			return
		}
		l.reserved += size
		q.reserved += size
		close(l.waiters.Pop().room)
	}
}
