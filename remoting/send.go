package remoting

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// sending is the half of a link that passes frames to the connection. It belongs to the loop.
type sending struct {
	*line
	first  [][]byte        // frames that go before all that waits
	taken  outbox.Packet   // to be posted next; zero: none
	send   *reconnect.Send // for the next post; nil: not made yet
	posted tally
}

// postFirst posts the frames that go before all that waits. False: they wait.
func (out *sending) postFirst() (posted bool) {
	for len(out.first) > 0 {
		if out.send == nil {
			out.send = newSend(out.first[0])
		}
		if !out.postFrame(messages{}) {
			return false
		}
		out.first = out.first[1:]
	}
	return true
}

// postPackets posts packets: system messages before the others. True: the queue is empty.
func (out *sending) postPackets(ctx actor.Context) (all bool) {
	p := out.p
	if !out.taken.IsZero() && !out.postPacket() {
		return false
	}
	for {
		p.mu.Lock()
		out.goneLocked()
		if !out.takeLocked() {
			p.awake = false
			p.mu.Unlock()
			return true
		}
		p.mu.Unlock()
		if len(out.taken.Bytes()) > out.most {
			out.dropTooLarge(ctx)
			continue
		}
		if !out.postPacket() {
			return false
		}
	}
}

func (out *sending) postPacket() (posted bool) {
	if out.send == nil {
		out.send = newSend(out.taken.Bytes())
	}
	var n messages
	if !out.taken.System {
		n = messages{all: out.taken.Records, upkeep: out.taken.Upkeep}
	}
	return out.postFrame(n)
}

// takeLocked takes the next packet.
func (out *sending) takeLocked() (ok bool) {
	if out.taken, ok = out.p.system.Take(); ok {
		out.taken.System = true
		return true
	}
	out.taken, ok = out.p.user.Take()
	return ok
}

// goneLocked removes a posted packet from the queue's count.
func (out *sending) goneLocked() {
	if out.taken.IsZero() {
		return
	}
	out.uncountLocked()
	out.taken.Free()
	out.taken = outbox.Packet{}
}

// uncountLocked returns the room of the packet that was taken to its lane.
func (out *sending) uncountLocked() {
	p := out.p
	if out.taken.System {
		p.system.Gone(&out.taken)
		return
	}
	p.user.Gone(&out.taken)
	p.releaseLocked()
}

// backLocked returns packets that were taken and not posted to the queue.
func (out *sending) backLocked() {
	switch {
	case out.taken.IsZero():
		return
	case out.taken.System:
		out.p.system.Back(out.taken)
	default:
		out.p.user.Back(out.taken)
	}
	out.taken, out.send = outbox.Packet{}, nil
}

// postFrame hands the connection the frame that is next, which has so many messages. False: it
// waits for *rdma.Writable, or for the end of the connection.
func (out *sending) postFrame(n messages) (posted bool) {
	err := out.up.Post(out.send)
	if err == nil {
		out.send = nil
		out.posted.add(n)
		out.settlePosted()
		return true
	}
	if !errors.Is(err, rdma.ErrQueueFull) {
		out.send = nil // it may be sent in the next generation
	}
	return false
}

// newSend makes a message whose fate is only counted.
func newSend(b []byte) *reconnect.Send {
	s := reconnect.NewSend(0, b)
	s.Quiet = true
	return s
}

// settlePosted forgets the frames that the peer is known to have consumed. If the connection is
// gone, and Down has not come, any of the others may not have been.
func (out *sending) settlePosted() {
	if n, ok := out.up.Unsettled(); ok {
		out.posted.trim(n)
	}
}

// tally counts the messages of the frames that were posted and are not known to be consumed.
type tally struct {
	frames ring.Ring[messages]
	messages
}

// messages counts messages: all, and of these Proto.Actor's upkeep of a cluster.
type messages struct{ all, upkeep int }

// sentByApp returns how many were sent by the application.
func (m messages) sentByApp() int { return m.all - m.upkeep }

// add counts a frame.
func (t *tally) add(n messages) {
	t.frames.Push(n)
	t.all += n.all
	t.upkeep += n.upkeep
}

// trim forgets all but the last n frames.
func (t *tally) trim(n int) {
	for t.frames.Len() > n {
		f := t.frames.Pop()
		t.all -= f.all
		t.upkeep -= f.upkeep
	}
}

// dropTooLarge makes a packet a dead letter that is larger than the peer takes: the limit was
// unknown when it was queued.
func (out *sending) dropTooLarge(ctx actor.Context) {
	p := out.p
	var target *actor.PID
	out.taken.Each(func(r *frame.Record) { target = actor.NewPID(out.who.Name, r.Target) })
	p.mu.Lock()
	number := out.taken.Number
	futures := p.futures.TakeThose(func(r *tables.Request) bool { return r.Packet == number })
	out.uncountLocked()
	p.counts.DeadLetters += uint64(out.taken.Records)
	p.mu.Unlock()
	out.host.answerNotSent(futures)
	out.report.publishEvent(ctx, &Refused{Target: target, By: out.host.name, Err: ErrTooLarge})
	out.report.deadLetters(out.who.Name, []outbox.Packet{out.taken})
	out.taken = outbox.Packet{}
}
