package rpc

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/ring"
)

// turnBytes is the number of received bytes that are read per turn of the loop: the rest is read in
// another turn, after other connections. A message may be much larger, and its frames may cost less
// to send than to read.
const turnBytes = 64 << 10

// resume makes a connection continue reading in another turn. All connections share one.
type resume struct{}

var resumeMsg any = &resume{}

// backlog is the received, unread input of a connection: the rest of the current message, and
// behind it messages that wait for another turn, or until answers were sent, oldest first. It
// belongs to the loop.
type backlog struct {
	reading *rdma.Received // the current message, or the last one
	rest    []byte         // unread part of reading
	came    time.Time      // arrival of reading; zero: not needed yet
	parked  ring.Ring[parked]
	waits   bool // another turn was requested
}

// parked is a message of a backlog, and its unread part.
type parked struct {
	m    *rdma.Received
	rest []byte
	came time.Time
}

// reader is the connection whose backlog it is.
type reader interface {
	// readFrames reads the frames off rest that fit in this turn. It may not return.
	readFrames(ctx actor.Context)
}

// takeMessage passes r a message, or parks it if others wait already.
func (b *backlog) takeMessage(ctx actor.Context, m *rdma.Received, r reader) {
	if b.parked.Len() > 0 {
		b.parked.Push(parked{m.Retain(), m.Data, orNow(m.Since)})
		return
	}
	b.reading, b.rest, b.came = m, m.Data, m.Since
	defer b.parkRest(ctx)
	r.readFrames(ctx)
}

// readOn makes r read the oldest message that was parked.
func (b *backlog) readOn(ctx actor.Context, r reader) {
	p := b.parked.Pop()
	b.reading, b.rest, b.came = p.m, p.rest, p.came
	defer p.m.Release() // the bytes read are in use until then
	defer b.parkRest(ctx)
	r.readFrames(ctx)
}

// parkRest keeps the rest of the current message, and requests another turn if any message waits
// for one.
func (b *backlog) parkRest(ctx actor.Context) {
	if len(b.rest) > 0 {
		b.parked.PushFront(parked{b.reading.Retain(), b.rest, b.arrivalTime()})
	}
	if b.parked.Len() > 0 {
		b.requestTurn(ctx)
	}
}

// requestTurn asks for another turn.
func (b *backlog) requestTurn(ctx actor.Context) {
	if !b.waits {
		b.waits = true
		rdma.After(ctx, 0, resumeMsg) // a message to itself could be received in the same turn
	}
}

// arrivalTime returns when the message that is being read came. The time-outs of its calls begin
// then.
func (b *backlog) arrivalTime() time.Time {
	b.came = orNow(b.came)
	return b.came
}

func orNow(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now()
	}
	return t
}

// releaseParked releases the parked messages.
func (b *backlog) releaseParked() {
	for b.parked.Len() > 0 {
		p := b.parked.Pop()
		p.m.Release()
	}
}
