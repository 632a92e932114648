package actor

import (
	"reflect"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// An identifier's mailbox and the memory for its answers are bounded, for any number of messages
// and of sending goroutines. There is room for:
//
//   - Limits.Mailbox messages, most of them Sends. A further Send is refused: its buffer is free
//     again when the sender continues, and only a count is kept here. It is answered behind the
//     messages in the mailbox, because answering first would let a flood keep its own connection
//     from sending.
//   - commandRoom commands more, in their sender's order. Further ones, and messages that are not
//     commands, are answered on the sender's goroutine.
//   - commandRoom commands more that end the identifier. When one is refused, others of the kind
//     are already queued.
//   - a cancel for each goroutine that waits in Ask, and this package's own messages, once each.
//
// While answers to refused Sends wait for the same actor they are merged (piles). Of other answers
// there is one for each message that was admitted, or that was answered on its sender's goroutine.

// commandRoom is how many commands have room beyond that of Sends, and how many may be in progress.
const commandRoom = 1024

// endsID reports whether cmd ends the identifier, and is answered by that end.
func endsID(cmd Command) bool {
	switch cmd.(type) {
	case *cmid.DestroyID, *Close:
		return true
	}
	return false
}

// isNilCommand reports whether cmd is a nil pointer.
func isNilCommand(cmd Command) bool {
	v := reflect.ValueOf(cmd)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// refusals counts the Sends for which the mailbox had no room. Any goroutine may use it.
type refusals struct {
	gate sync.RWMutex // held during a refusal; for good, once Closed is due
	over bool         // it is held for good; the loop's
	mu   sync.Mutex
	list []refusal // in the order of the first of each sender
	of   map[sender]int
}

// refusal counts the Sends of one sender that were refused.
type refusal struct {
	sender       *actor.PID
	sends, bytes int
}

// sender identifies a sender, as a key of a map.
type sender struct {
	address, id string
	request     uint32
}

// add counts a Send, and reports whether it is the first since the list was taken.
func (r *refusals) add(from *actor.PID, bytes int) (first bool) {
	key := sender{from.GetAddress(), from.GetId(), from.GetRequestId()}
	r.mu.Lock()
	defer r.mu.Unlock()
	i, ok := r.of[key]
	if !ok {
		if r.of == nil {
			r.of = make(map[sender]int)
		}
		i = len(r.list)
		r.of[key] = i
		r.list = append(r.list, refusal{sender: from})
	}
	r.list[i].sends++
	r.list[i].bytes += bytes
	return !ok && i == 0
}

// take returns the list and empties it.
func (r *refusals) take() (list []refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.list, r.of = r.list, nil, nil
	return list
}

// seal prevents further refusals. Not ok: a message is being refused at this moment.
func (r *refusals) seal() (ok bool) {
	r.over = r.over || r.gate.TryLock()
	return r.over
}
