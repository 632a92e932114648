package actor

import (
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/eventloop"
)

// The state of a loop is read on the loop. A loop that an actor blocks cannot answer, and just then
// an operator needs that state. So each identifier publishes its state whenever that changes, which
// is rare; for the rest, the last answer of a loop is kept.

// known has the identifiers of a loop for goroutines that do not ask the loop.
type known struct {
	mu  sync.Mutex
	ids map[*mailbox.Mailbox]*knownID // by the mailbox of an identifier's actor
}

// knownID describes an identifier at its last change. There is one for each identifier, so it has
// no more than that.
type knownID struct {
	pid, owner  *actor.PID
	id          Handle // 0: there is none, and state to entered have no value
	state       State
	local, peer Addr
	device      string
	born        time.Time
	entered     time.Duration // when the state was entered, since born
	listened    *listening    // nil: it has never listened
	said        *IDInfo       // the loop's last answer; nil: none yet
}

// idInfo returns the information on the identifier, of a loop with that name, without what is as of
// AsOf.
func (k *knownID) idInfo(loop string, now time.Time) IDInfo {
	i := IDInfo{PID: k.pid, Owner: k.owner, Loop: loop}
	if k.id != 0 {
		i.ID, i.State, i.Local, i.Peer, i.Device = k.id, k.state, k.local, k.peer, k.device
		i.Age, i.InState = now.Sub(k.born), now.Sub(k.born)-k.entered
	}
	return i
}

// add adds an identifier and returns its description, which update changes. If the identifier is
// here already, its description is updated.
func (k *known) add(box *mailbox.Mailbox, now knownID) *knownID {
	k.mu.Lock()
	id := k.ids[box]
	if id == nil {
		if k.ids == nil {
			k.ids = make(map[*mailbox.Mailbox]*knownID)
		}
		id = new(knownID)
		k.ids[box] = id
	}
	k.mu.Unlock()
	k.update(id, now)
	return id
}

// update stores the present state of an identifier in its description.
func (k *known) update(id *knownID, now knownID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now.said = id.said
	*id = now
}

// remove removes an identifier that has ended.
func (k *known) remove(box *mailbox.Mailbox) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ids, box)
}

// storeAnswers stores the loop's answers.
func (k *known) storeAnswers(ids []*mailbox.Mailbox, infos []IDInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, box := range ids {
		if id := k.ids[box]; id != nil {
			id.said = &infos[i]
		}
	}
}

// copyLoopValues copies the values that only the loop knows.
func (i *IDInfo) copyLoopValues(s *IDInfo) {
	i.AsOf, i.Wire, i.Waiting, i.Credits, i.Traffic = s.AsOf, s.Wire, s.Waiting, s.Credits, s.Traffic
	i.Memory, i.Delivered, i.History = s.Memory, s.Delivered, s.History
}

// allInfos returns the known state of the identifiers of a loop with that name that does not
// answer.
func (k *known) allInfos(loop string, now time.Time) []IDInfo {
	k.mu.Lock()
	defer k.mu.Unlock()
	infos := make([]IDInfo, 0, len(k.ids))
	for box, id := range k.ids {
		i := id.idInfo(loop, now)
		i.Mailbox = box.UserMessageCount()
		if id.listened != nil {
			i.Listener = id.listened.listenerInfo()
		}
		if s := id.said; s != nil {
			i.copyLoopValues(s)
			if i.Listener != nil && s.Listener != nil {
				i.Listener.Strangers, i.Listener.Starved = s.Listener.Strangers, s.Listener.Starved
			}
		}
		infos = append(infos, i)
	}
	return infos
}

// inquiry asks a loop for one kind of information, for any number of goroutines. While the loop
// works on an answer, later callers wait together for the next answer, so that no answer is older
// than its question. Any goroutine may use it.
type inquiry[T any] struct {
	mu       sync.Mutex
	works    bool          // the loop works on an answer
	answered chan struct{} // closed at the next answer; nil: no caller waits for that
	last     T             // answer
}

// askLoop asks a loop, and returns a channel that is closed when it has answered; nil: the loop has
// ended. The loop calls ask, which answers immediately or in a later turn.
func (q *inquiry[T]) askLoop(el *eventloop.Loop, ask func(answer func(T))) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answered != nil {
		return q.answered
	}
	if !q.works && el.Post(func() { q.beginAnswer(el, ask) }) != nil {
		return nil
	}
	q.answered = make(chan struct{})
	return q.answered
}

// beginAnswer begins an answer. It runs on the loop.
func (q *inquiry[T]) beginAnswer(el *eventloop.Loop, ask func(answer func(T))) {
	q.mu.Lock()
	answered := q.answered
	q.answered, q.works = nil, true
	q.mu.Unlock()
	ask(func(a T) {
		q.mu.Lock()
		q.last, q.works = a, false
		if q.answered != nil {
			_ = el.Post(func() { q.beginAnswer(el, ask) }) // no caller waits long for an ended loop
		}
		q.mu.Unlock()
		close(answered)
		el.Handoff()
	})
}

// breakOff ends the work on an answer that a callback's Goexit has interrupted.
func (q *inquiry[T]) breakOff() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.works {
		q.answered, q.works = nil, false
	}
}

func (q *inquiry[T]) setAnswer(answer T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = answer
}

func (q *inquiry[T]) lastAnswer() T {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}
