package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
)

// incoming is a peer's connection request, on its way to the loop where the connection will live.
// It already counts for that loop (loop.assigned) and for the runtime.
type incoming struct {
	id      *cmid.ID
	r       *cmid.ConnectRequest
	cfg     IDConfig     // the listener's
	handler *actor.Props // the listener's; nil: owner has it
	via     *listening   // the listener's
	owner   *actor.PID   // the listener's, or whom its Route has named; nil: nobody
	box     *mailbox.Mailbox

	name string // the listener's

	// Of a secured connection: the request's hint, and what is behind that; where Place puts it;
	// the listener's Route.
	hint   uint32
	behind []byte
	near   *loop // nil: anywhere
	route  func(r *ConnectRequest) (*actor.PID, *Reject)

	stranger *limits.Stranger // among the runtime's, until its peer is authenticated
}
