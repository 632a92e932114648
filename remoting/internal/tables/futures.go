package tables

import (
	"slices"
	"strconv"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// Futures are this node's futures that wait for answers of one peer. They belong to the peer's
// mutex.
//
// Each request has a slot, and a token. Its sender is named after the slot on the other node, so
// that few names recur, and so that the answer shows where to look for it, whichever node sends it.
// The token is the sender's RequestId. A node that has both may answer, once: the peer that was
// asked, or a node that the request was forwarded to. The name has a random number of 64 bits, one
// for each peer: nodes that have got none of its requests can name no slot.
type Futures struct {
	prefix  string // of the names of its slots: slotPrefix, and the random number of the link
	slots   []Request
	free    []int // the one that was used last comes last
	seq     uint64
	sweepAt int // how many slots there may be before futures that are gone are looked for
	looked  int // the slot that was looked at last

	gone []uint32 // a ring of the tokens of the latest requests that no longer wait
	old  int      // the index of its oldest token, once it has goneMost
}

// MakeFutures makes those of the link with that random number.
func MakeFutures(link uint64) Futures {
	return Futures{prefix: slotPrefix + strconv.FormatUint(link, 10) + "."}
}

// Request is a future's message to the peer.
type Request struct {
	name    string // of the slot
	seq     uint64
	Target  *actor.PID
	Future  *actor.PID
	Process actor.Process // the future's; nil: the slot is free
	Packet  uint64        // the number of the packet that it is in
	Token   uint32
	last    uint32 // the token of the request before, in the same slot
}

// FuturesMost is how many futures may wait for one peer.
const FuturesMost = 1 << 18

// FuturePrefix starts the ids of Proto.Actor's futures, and slotPrefix those of slots.
const (
	FuturePrefix = "future$"
	slotPrefix   = FuturePrefix + "#" // no future's has that
)

// IsFuture reports whether the id is that of a future, or of a slot.
func IsFuture(id string) bool { return strings.HasPrefix(id, FuturePrefix) }

// Waiting is how many there are.
func (f *Futures) Waiting() int { return len(f.slots) - len(f.free) }

// Room reports whether another future may wait. alive reports whether a future still does.
func (f *Futures) Room(alive func(id string) bool) bool {
	if len(f.free) == 0 && len(f.slots) >= f.sweepAt {
		for i := range f.slots {
			if !alive(f.slots[i].Future.Id) {
				f.releaseSlot(i)
			}
		}
		f.sweepAt = 2*f.Waiting() + 1024
	}
	if f.Waiting() < FuturesMost {
		return true
	}
	f.sweepSome(roomLooks, alive) // there are too many for each request to look at all
	return f.Waiting() < FuturesMost
}

// The number of slots that are checked for ended futures: by a request that finds too many, and by
// Sweep.
const (
	roomLooks  = 64
	sweepLooks = 4096
)

// Sweep removes futures that are gone, such as those that have timed out. It looks at some of the
// slots, and at others the next time.
func (f *Futures) Sweep(alive func(id string) bool) { f.sweepSome(sweepLooks, alive) }

func (f *Futures) sweepSome(most int, alive func(id string) bool) {
	for range min(most, len(f.slots)) {
		f.looked = (f.looked + 1) % len(f.slots)
		if r := &f.slots[f.looked]; r.Process != nil && !alive(r.Future.Id) {
			f.releaseSlot(f.looked)
		}
	}
}

// Next is the name of the slot that the next request gets.
func (f *Futures) Next() string {
	if len(f.free) == 0 {
		f.free = append(f.free, len(f.slots))
		f.slots = append(f.slots, Request{name: f.prefix + strconv.Itoa(len(f.slots))})
	}
	return f.slots[f.free[len(f.free)-1]].name
}

// Add enters a request in the slot that Next has named.
func (f *Futures) Add(r Request) {
	i := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	f.seq++
	r.name, r.seq, r.last = f.slots[i].name, f.seq, f.slots[i].last
	f.slots[i] = r
}

// goneMost is the number of tokens in gone. The latest of each slot is kept in addition.
const goneMost = 4096

func (f *Futures) releaseSlot(i int) {
	token := f.slots[i].Token
	f.slots[i] = Request{name: f.slots[i].name, last: token}
	f.free = append(f.free, i)
	if len(f.gone) < goneMost {
		f.gone = append(f.gone, token)
		return
	}
	f.gone[f.old] = token
	f.old = (f.old + 1) % goneMost
}

// findSlot returns the slot of that name; -1: there is none with such a token.
func (f *Futures) findSlot(name string, token uint32) int {
	i := f.slotIndex(name)
	if i < 0 || f.slots[i].Process == nil || f.slots[i].Token != token {
		return -1
	}
	return i
}

// slotIndex returns the slot of that name; -1: there is none.
func (f *Futures) slotIndex(name string) int {
	digits, ok := strings.CutPrefix(name, f.prefix)
	if !ok {
		return -1
	}
	i, err := strconv.Atoi(digits)
	if err != nil || i < 0 || i >= len(f.slots) {
		return -1
	}
	return i
}

// Late reports whether a token belongs to the slot's previous request, or to one of the latest
// requests of all slots. An answer with it is late, or a second one to the same request, and not a
// guess: the slot that was freed last is reused first, so its number may already belong to newer
// requests.
func (f *Futures) Late(name string, token uint32) bool {
	i := f.slotIndex(name)
	return i >= 0 && (f.slots[i].last == token || slices.Contains(f.gone, token))
}

// Find returns a request by its token.
func (f *Futures) Find(name string, token uint32) (r Request, ok bool) {
	if i := f.findSlot(name, token); i >= 0 {
		return f.slots[i], true
	}
	return r, false
}

// Take removes a request by its token.
func (f *Futures) Take(name string, token uint32) (r Request, ok bool) {
	i := f.findSlot(name, token)
	if i < 0 {
		return r, false
	}
	r = f.slots[i]
	f.releaseSlot(i)
	return r, true
}

// Has reports whether a name is one of its slots', used or not.
func (f *Futures) Has(name string) bool { return strings.HasPrefix(name, f.prefix) }

// LinkOf is the random number of the link whose slots are named like this.
func LinkOf(name string) (link uint64, ok bool) {
	slot, ok := strings.CutPrefix(name, slotPrefix)
	if !ok {
		return 0, false
	}
	digits, _, _ := strings.Cut(slot, ".")
	link, err := strconv.ParseUint(digits, 10, 64)
	return link, err == nil
}

// TakeThose removes the requests for which which is true, and returns them in the order in which
// they were put.
func (f *Futures) TakeThose(which func(*Request) bool) (those []Request) {
	for i := range f.slots {
		if r := &f.slots[i]; r.Process != nil && which(r) {
			those = append(those, *r)
			f.releaseSlot(i)
		}
	}
	slices.SortFunc(those, func(a, b Request) int { return int(a.seq) - int(b.seq) })
	return those
}
