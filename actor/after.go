package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// After sends msg to the calling actor itself, not before d has passed; 0 or less means soon, never inside the call. For an OnLoop
// actor it is the loop's timer, and the loop's clock (virtual in tests); for every other one time.AfterFunc. It is called in
// Receive, and so is stop, which is the way to change one's mind: after it the message is not sent any more, though it may be
// waiting in the mailbox already. A restarted actor gets the message; one that has stopped by then does not, and there is no dead
// letter either.
func After(ctx actor.Context, d time.Duration, msg any) (stop func()) {
	return mailbox.After(ctx, d, msg)
}
