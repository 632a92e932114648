package remoting

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// flush sends what waits, as far as the connection has room.
func (l *link) flush(ctx actor.Context) {
	if l.up == nil {
		l.consider(ctx)
		return
	}
	for len(l.first) > 0 {
		if l.send == nil {
			l.send = newSend(l.first[0])
		}
		if !l.post(0) {
			return
		}
		l.first = l.first[1:]
	}
	switch l.greeting {
	case open:
		l.flushPackets(ctx)
	case refusing:
		ctx.Send(l.conn, &reconnect.Break{Generation: l.up.Generation, Err: l.cause})
	default:
		l.await(ctx) // for what waits, and may not be much longer
	}
}

// flushPackets posts packets: system messages before the others.
func (l *link) flushPackets(ctx actor.Context) {
	p := l.p
	if l.out.buf != nil && !l.postPacket() {
		return
	}
	for {
		p.mu.Lock()
		l.goneLocked()
		if !l.takeLocked() {
			p.awake = false
			p.mu.Unlock()
			l.leaveIfSent(ctx)
			return
		}
		p.mu.Unlock()
		if len(l.out.bytes()) > l.most {
			l.dropTooLarge(ctx)
			continue
		}
		if !l.postPacket() {
			return
		}
	}
}

func (l *link) postPacket() (posted bool) {
	if l.send == nil {
		l.send = newSend(l.out.bytes())
	}
	records := l.out.records
	if l.out.system {
		records = 0
	}
	return l.post(records)
}

// takeLocked takes the next packet.
func (l *link) takeLocked() (ok bool) {
	if l.out, ok = l.p.system.take(); ok {
		l.out.system = true
		return true
	}
	l.out, ok = l.p.user.take()
	return ok
}

// goneLocked gives up what a packet that was posted has taken of the queue.
func (l *link) goneLocked() {
	p := l.p
	switch {
	case l.out.buf == nil:
		return
	case l.out.system:
		p.system.gone(l.out)
	default:
		l.sent = l.out.number + 1
		p.user.gone(l.out)
		p.releaseLocked()
	}
	l.out = packet{}
}

// post hands the connection the message that is next, which has so many user records. False: it
// waits for *rdma.Writable, or for the end of the connection.
func (l *link) post(records int) (posted bool) {
	err := l.up.Post(l.send)
	if err == nil {
		l.send = nil
		l.posted.add(records)
		l.settle()
		return true
	}
	if !errors.Is(err, reconnect.ErrQueueFull) {
		l.send = nil // it may be sent in the next generation
	}
	return false
}

// newSend makes a message whose fate is only counted.
func newSend(b []byte) *reconnect.Send {
	s := reconnect.NewSend(0, b)
	s.Quiet = true
	return s
}

// settle forgets the frames that the peer is known to have consumed. If the connection is gone, and
// Down has not come, any of the others may not have been.
func (l *link) settle() {
	if n, ok := l.up.Unsettled(); ok {
		l.posted.trim(n)
	}
}

// tally counts the user records of the frames that were posted and are not known to be consumed.
type tally struct {
	frames  ring.Ring[int]
	records int
}

// add counts a frame.
func (t *tally) add(records int) {
	t.frames.Push(records)
	t.records += records
}

// trim forgets all but the last n frames.
func (t *tally) trim(n int) {
	for t.frames.Len() > n {
		t.records -= t.frames.Pop()
	}
}

// dropTooLarge makes a packet a dead letter that is larger than the peer takes: that was not known
// when it was queued.
func (l *link) dropTooLarge(ctx actor.Context) {
	p := l.p
	var target *actor.PID
	eachRecord(l.out.bytes(), func(r *frame.Record) { target = actor.NewPID(l.who.Name, r.Target) })
	p.mu.Lock()
	number := l.out.number
	futures := p.futures.takeThose(func(r *request) bool { return r.packet == number })
	p.user.bytes -= len(l.out.bytes())
	p.counts.DeadLetters += uint64(l.out.records)
	p.releaseLocked()
	p.mu.Unlock()
	for i := range futures {
		l.n.answer(&futures[i], &actor.DeadLetterResponse{Target: futures[i].target}, 0)
	}
	l.notify(ctx, &Refused{Target: target, By: l.n.name, Err: ErrTooLarge})
	l.deadLetters(l.who.Name, []packet{l.out})
	l.out = packet{}
}
