package actor

import (
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/eventloop"
)

// What a loop has is read on the loop. One that an actor blocks cannot answer, and just then an
// operator wants to know what it has. So each identifier publishes what it is whenever that
// changes, which is rare; and what a loop has answered last is kept, for the rest.

// known is what any goroutine may know of a loop's identifiers, without asking the loop.
type known struct {
	mu  sync.Mutex
	ids map[*mailbox.Mailbox]*knownID // by the mailbox of an identifier's actor
}

// knownID is an identifier as it was when it changed last.
type knownID struct {
	is            IDInfo // without what is as of AsOf
	born, entered time.Time
	listened      *listening // nil: it does not listen
	said          *IDInfo    // by the loop; nil: nothing yet
}

// remove forgets an identifier that has ended.
func (k *known) remove(box *mailbox.Mailbox) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ids, box)
}

// keep keeps what the loop has answered.
func (k *known) keep(ids []*mailbox.Mailbox, infos []IDInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, box := range ids {
		if id := k.ids[box]; id != nil {
			id.said = &infos[i]
		}
	}
}

// asSaid takes over what only the loop knows.
func (i *IDInfo) asSaid(s *IDInfo) {
	i.AsOf, i.Wire, i.Waiting, i.Credits, i.Traffic = s.AsOf, s.Wire, s.Waiting, s.Credits, s.Traffic
	i.Memory, i.Delivered, i.History = s.Memory, s.Delivered, s.History
}

// all is what is known of the identifiers of a loop that does not answer.
func (k *known) all(now time.Time) []IDInfo {
	k.mu.Lock()
	defer k.mu.Unlock()
	infos := make([]IDInfo, 0, len(k.ids))
	for box, id := range k.ids {
		i := id.is
		i.Mailbox = box.UserMessageCount()
		if i.ID != 0 {
			i.Age, i.InState = now.Sub(id.born), now.Sub(id.entered)
		}
		if id.listened != nil {
			i.Listener = id.listened.info()
		}
		if s := id.said; s != nil {
			i.asSaid(s)
			if i.Listener != nil && s.Listener != nil {
				i.Listener.Strangers, i.Listener.Starved = s.Listener.Strangers, s.Listener.Starved
			}
		}
		infos = append(infos, i)
	}
	return infos
}

// inquiry asks a loop for one kind of information, for any number of goroutines. While the loop
// works on an answer, those who ask wait together for the one after it, which is of a time when
// they have asked. Any goroutine.
type inquiry[T any] struct {
	mu       sync.Mutex
	works    bool          // the loop is at an answer
	answered chan struct{} // closed at the next one; nil: nobody waits for that
	last     T             // answer
}

// begin asks a loop, and returns a channel that is closed when it has answered; nil: the loop has
// ended. The loop calls ask, which gives the answer then or in a later turn.
func (q *inquiry[T]) begin(el *eventloop.Loop, ask func(answer func(T))) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answered != nil {
		return q.answered
	}
	if !q.works && el.Post(func() { q.work(el, ask) }) != nil {
		return nil
	}
	q.answered = make(chan struct{})
	return q.answered
}

// work begins an answer. It runs on the loop.
func (q *inquiry[T]) work(el *eventloop.Loop, ask func(answer func(T))) {
	q.mu.Lock()
	answered := q.answered
	q.answered, q.works = nil, true
	q.mu.Unlock()
	ask(func(a T) {
		q.mu.Lock()
		q.last, q.works = a, false
		if q.answered != nil {
			_ = el.Post(func() { q.work(el, ask) }) // of a loop that ends nobody waits long
		}
		q.mu.Unlock()
		close(answered)
		el.Handoff()
	})
}

func (q *inquiry[T]) set(answer T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = answer
}

func (q *inquiry[T]) lastAnswer() T {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}
