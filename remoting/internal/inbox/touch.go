package inbox

import (
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Name is the name of the process that gets the answers to Touch, in each system that has an Inbox.
// No peer can reach it.
const Name = "rdma-remoting/touched"

// touched is that process. An answer is sent to a PID whose RequestId identifies the Touch.
type touched struct {
	mu   sync.Mutex
	last uint32
	out  map[uint32]*mark
}

// mark is a Touch that was not answered.
type mark struct {
	id   uint32
	to   *route
	upTo int64 // the position before which all is consumed when it is answered
}

// touchedOf returns the process of a system. The first call makes it.
func touchedOf(sys *actor.ActorSystem) *touched {
	t := &touched{out: make(map[uint32]*mark)}
	if _, added := sys.ProcessRegistry.Add(t, Name); added {
		return t
	}
	p, _ := sys.ProcessRegistry.GetLocal(Name)
	if is, ok := p.(*touched); ok {
		return is
	}
	return t // the name is taken: no Touch is ever answered
}

// add makes a mark.
func (t *touched) add(r *route, upTo int64) *mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if t.last++; t.last != 0 && t.out[t.last] == nil {
			break
		}
	}
	m := &mark{id: t.last, to: r, upTo: upTo}
	t.out[m.id] = m
	return m
}

// remove forgets a mark without a waiter.
func (t *touched) remove(m *mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.out, m.id)
}

// SendUserMessage is an answer: *actor.Touched, *actor.DeadLetterResponse, or the actor's own
// answer. The receiver of the Touch has consumed all earlier messages.
func (t *touched) SendUserMessage(pid *actor.PID, _ any) {
	t.mu.Lock()
	m := t.out[pid.RequestId]
	delete(t.out, pid.RequestId)
	t.mu.Unlock()
	if m != nil {
		m.to.consumedUpTo(m.upTo)
	}
}

// SendSystemMessage has nothing to do.
func (*touched) SendSystemMessage(*actor.PID, any) {}

// Stop has nothing to do.
func (*touched) Stop(*actor.PID) {}

// mostMarks is how many Touches an actor may have that it has not answered.
const mostMarks = 8

// sendTouch sends the actor a Touch, behind all earlier messages. It may be lost: another one
// follows later and later.
func (r *route) sendTouch() {
	if n := len(r.marks); n == mostMarks {
		r.in.answers.remove(r.marks[n-1])
		r.marks = r.marks[:n-1]
	}
	m := r.in.answers.add(r, r.sent)
	r.marks = append(r.marks, m)
	r.marked = r.sent
	answer := &actor.PID{Address: r.in.cfg.System.Address(), Id: Name, RequestId: m.id}
	env := &actor.MessageEnvelope{Message: &actor.Touch{}, Sender: answer}
	r.gap = min(max(2*r.gap, r.in.pause), time.Minute)
	r.again = r.in.local.Now().Add(r.gap)
	if r.off {
		r.queueItem(item{message{target: answer, msg: env}, r.process, m})
		return
	}
	r.process.SendUserMessage(answer, env)
	r.posted.Add(1)
}
