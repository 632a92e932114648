package rpc

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// turnBytes is how much of what a peer has sent is read in a turn of the loop, and one frame: a
// message may be much larger, of frames that are cheap to send and not as cheap to read. The rest
// has its turn behind other connections. It is what a message has at most where nobody says
// otherwise (Config.MaxMessage).
const turnBytes = 64 << 10

// resume has a connection read on, in another turn. There is one of it for all.
type resume struct{}

var resumeMsg any = &resume{}

// backlog is the messages of a connection whose rest waits for another turn, or until answers have
// gone, oldest first. The loop's.
type backlog struct {
	parked []parked
	waits  bool // another turn was asked for
}

// parked is a message of a backlog.
type parked struct {
	m    *rdma.Received
	rest []byte
	came time.Time
}

// park keeps what is left of a message, which is being received.
func (b *backlog) park(m *rdma.Received, rest []byte, came time.Time) {
	b.parked = append(b.parked, parked{m.Retain(), rest, came})
}

// next asks for another turn.
func (b *backlog) next(ctx actor.Context) {
	if !b.waits {
		b.waits = true
		rdma.After(ctx, 0, resumeMsg) // a message to itself could be received in this turn
	}
}

// forget gives back what was parked.
func (b *backlog) forget() {
	for _, p := range b.parked {
		p.m.Release()
	}
	b.parked = nil
}
