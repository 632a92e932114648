package rpc

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// turnBytes is how much of what a peer has sent is read in a turn of the loop, and one frame: a
// message may be much larger, of frames that are cheap to send and not as cheap to read. The rest
// has its turn behind other connections. It is what a message has at most where nobody says
// otherwise (WithMessages).
const turnBytes = 64 << 10

// resume has a connection read on, in another turn. There is one of it for all.
type resume struct{}

var resumeMsg any = &resume{}

// turns is whether a connection waits for another turn to read on. The loop's.
type turns struct{ waits bool }

// next asks for another turn.
func (t *turns) next(ctx actor.Context) {
	if !t.waits {
		t.waits = true
		rdma.After(ctx, 0, resumeMsg) // a message to itself could be received in this turn
	}
}

// parked is a message whose rest waits for another turn, or until answers have gone.
type parked struct {
	m    *rdma.Received
	rest []byte
	came time.Time
}
