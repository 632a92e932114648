package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// incoming is a peer's connection request, until it is answered: first on its way to the loop where
// the connection will live, then at the identifier that is made for it there (commandTable.asked).
// It counts for that loop (loop.assigned) and for the runtime from the beginning.
type incoming struct {
	id      *cmid.ID
	r       *cmid.ConnectRequest // the owner's, once it is notified
	cfg     *IDConfig            // its connection's
	handler *actor.Props         // the listener's; nil: owner has it
	via     *listening           // the listener's
	owner   *actor.PID           // the listener's, or the one that its Route has chosen; nil: none
	box     *mailbox.Mailbox

	listener cmid.Handle
	name     string    // the listener's
	due      time.Time // its identifier rejects it then

	// Of a secured connection: the request's hint, and the private data behind it; the loop chosen
	// by Place; the listener's Route.
	hint   uint32
	behind []byte
	near   *loop // nil: anywhere
	route  func(r *ConnectRequest) (*actor.PID, *Reject)

	stranger *limits.Stranger // among the runtime's, until its peer is authenticated
}

// isOverdue reports whether the request was not answered in time.
func (in *incoming) isOverdue(now time.Time) bool { return in != nil && !in.due.After(now) }

// peerTerms describes the connection that the peer of a request wants. The identifier keeps it
// beyond the answer: if the device fails to send a Reject, the owner may answer again.
type peerTerms struct {
	mode  datapath.Mode
	hello wire.Hello     // zero: the peer has sent none
	reads cmid.ConnParam // the peer's
}

// takeTerms returns the request's terms, and removes all but the user's part from its private data.
func (in *incoming) takeTerms() peerTerms {
	r, t := in.r, peerTerms{mode: datapath.ModeRaw, reads: in.r.Param}
	if in.cfg.Raw {
		return t
	}
	var ok bool
	t.hello, r.PrivateData, ok = wire.ParseHello(r.PrivateData, in.id.Limits().Padded)
	t.mode = datapath.ModeForeign
	if ok {
		t.mode = datapath.ModeMessages
	}
	r.Foreign = !ok
	return t
}
