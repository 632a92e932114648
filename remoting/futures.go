package remoting

import (
	"slices"
	"strconv"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// futures are this node's futures that wait for answers of one peer. They belong to the peer's
// mutex.
//
// Each request has a slot, and a token. Its sender is called after the slot on the other node, so
// that few names come again and again, and so that the answer says where to look for it, whoever
// sends that. The token is the sender's RequestId. Who has it may
// answer, once: the peer that was asked, or a node that this one has forwarded the request to.
// Nobody can guess it.
type futures struct {
	prefix  string // of the names of its slots: slotPrefix, and the number of the link
	slots   []request
	free    []int // the one that was used last comes last
	seq     uint64
	sweepAt int // how many slots there may be before futures that are gone are looked for
	look    int // the slot that was looked at last when there were too many
}

// request is a future's message to the peer.
type request struct {
	name   string // of the slot
	target *actor.PID
	future *actor.PID
	proc   actor.Process // nil: the slot is free
	packet uint64        // the number of the packet that it is in
	seq    uint64
	token  uint32
}

// futuresMost is how many futures may wait for one peer.
const futuresMost = 1 << 18

// futurePrefix is what the ids of Proto.Actor's futures begin with, and slotPrefix what those of
// slots do.
const (
	futurePrefix = "future$"
	slotPrefix   = futurePrefix + "#" // no future's has that
)

func isFuture(id string) bool { return strings.HasPrefix(id, futurePrefix) }

// waiting is how many there are.
func (f *futures) waiting() int { return len(f.slots) - len(f.free) }

// room reports whether another future may wait. alive says whether a future still does.
func (f *futures) room(alive func(id string) bool) bool {
	if len(f.free) == 0 && len(f.slots) >= f.sweepAt {
		for i := range f.slots {
			if !alive(f.slots[i].future.Id) {
				f.vacate(i)
			}
		}
		f.sweepAt = 2*f.waiting() + 1024
	}
	if f.waiting() < futuresMost {
		return true
	}
	for range looksMost { // no slot is free, and there are too many for each request to look at all
		f.look = (f.look + 1) % len(f.slots)
		if !alive(f.slots[f.look].future.Id) {
			f.vacate(f.look)
		}
	}
	return f.waiting() < futuresMost
}

// looksMost is how many of too many futures are looked at.
const looksMost = 64

// next is the name of the slot that the next request gets.
func (f *futures) next() string {
	if len(f.free) == 0 {
		f.free = append(f.free, len(f.slots))
		f.slots = append(f.slots, request{name: f.prefix + strconv.Itoa(len(f.slots))})
	}
	return f.slots[f.free[len(f.free)-1]].name
}

// add enters a request in the slot that next has named.
func (f *futures) add(r request) {
	i := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	f.seq++
	r.name, r.seq = f.slots[i].name, f.seq
	f.slots[i] = r
}

func (f *futures) vacate(i int) {
	f.slots[i] = request{name: f.slots[i].name}
	f.free = append(f.free, i)
}

// slot is the slot of that name; -1: there is none with such a token.
func (f *futures) slot(name string, token uint32) int {
	digits, ok := strings.CutPrefix(name, f.prefix)
	if !ok {
		return -1
	}
	i, err := strconv.Atoi(digits)
	if err != nil || i < 0 || i >= len(f.slots) || f.slots[i].proc == nil || f.slots[i].token != token {
		return -1
	}
	return i
}

// find returns a request, for who has its token.
func (f *futures) find(name string, token uint32) (r request, ok bool) {
	if i := f.slot(name, token); i >= 0 {
		return f.slots[i], true
	}
	return r, false
}

// take removes a request, for who has its token.
func (f *futures) take(name string, token uint32) (r request, ok bool) {
	i := f.slot(name, token)
	if i < 0 {
		return r, false
	}
	r = f.slots[i]
	f.vacate(i)
	return r, true
}

// slotsOf is what the names of a link's slots begin with.
func slotsOf(link uint64) string { return slotPrefix + strconv.FormatUint(link, 10) + "." }

// linkOf is the number of the link whose slots are named like this.
func linkOf(name string) (link uint64, ok bool) {
	slot, ok := strings.CutPrefix(name, slotPrefix)
	if !ok {
		return 0, false
	}
	digits, _, _ := strings.Cut(slot, ".")
	link, err := strconv.ParseUint(digits, 10, 64)
	return link, err == nil
}

// takeThose removes the requests for which which is true, and returns them in the order in which
// they were put.
func (f *futures) takeThose(which func(*request) bool) (those []request) {
	for i := range f.slots {
		if r := &f.slots[i]; r.proc != nil && which(r) {
			those = append(those, *r)
			f.vacate(i)
		}
	}
	slices.SortFunc(those, func(a, b request) int { return int(a.seq) - int(b.seq) })
	return those
}
