package hostile

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

const (
	ddp, rdmap, mpa = wire.LayerDDP, wire.LayerRDMAP, wire.LayerMPA
	untagged        = wire.DDPUntagged
	inBuffer        = wire.DDPTagged
	operation       = wire.RDMAPOperation
	protection      = wire.RDMAPProtection

	general = verbs.StatusGeneral
	tooLong = verbs.StatusLocLen
)

// The ends that several exchanges share.
var (
	anything = Want{Outcome: Anything}
	orderly  = Want{Outcome: Orderly}
	cutOff   = Want{Outcome: Failed, Errno: unix.ECONNRESET}

	// of a listener, in set-up
	ignored       = Want{Outcome: Nothing}
	rejected      = Want{Outcome: Nothing, Reject: true}
	tooEarly      = Want{Outcome: ConnectError, Errno: unix.ECONNRESET}
	outOfPatience = Want{Outcome: Unreachable, Errno: unix.ETIMEDOUT}

	// of an initiator: after a malformed frame, and after none
	notAReply = Want{Outcome: ConnectError, Errno: unix.EINVAL, Term: Term{mpa, 0, 4}}
	noRTR     = Want{Outcome: ConnectError, Errno: unix.EINVAL, Term: Term{mpa, 0, 7}}
	hungUp    = Want{Outcome: Refused, Errno: unix.ECONNRESET}

	noSTag       = wantTerminate(ddp, inBuffer, 0, "STag")
	noBounds     = wantTerminate(ddp, inBuffer, 1, "")
	noAccess     = wantTerminate(rdmap, protection, 2, "")
	notTaken     = withStatus(wantTerminate(rdmap, protection, 9, "STag"), verbs.StatusRemInvReq)
	unreadable   = wantTerminate(rdmap, protection, 0, "STag")
	outside      = wantTerminate(rdmap, protection, 1, "")
	noReceive    = wantTerminate(ddp, untagged, 2, "no receive posted")
	tooManyBytes = withStatus(wantTerminate(ddp, untagged, 5, "1025 bytes"), tooLong)
	unasked      = wantTerminate(ddp, 0, 0, "Read Response")
)

// wantTerminate returns the end of a connection because of a wrong segment.
func wantTerminate(l wire.Layer, kind, code uint8, text string) Want {
	return Want{Outcome: Failed, Errno: unix.EPROTO, Term: Term{l, kind, code}, Copy: true, Text: text}
}

// wantBareTerminate returns wantTerminate's without the headers.
func wantBareTerminate(l wire.Layer, kind, code uint8, text string) Want {
	w := wantTerminate(l, kind, code, text)
	w.Copy = false
	return w
}

// withStatus returns w with the status of the work request that the error affects.
func withStatus(w Want, s verbs.Status) Want {
	w.Hit = s
	return w
}
