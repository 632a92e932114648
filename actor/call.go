package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// call lets the owner at the plain identifier.
func (it *ident) call(c *Call, sender *actor.PID) {
	if c.Fn == nil {
		it.fail(c, sender, fmt.Errorf("Call.Fn is nil: %w", unix.EINVAL))
		return
	}
	if err := c.Fn(it.id); err != nil {
		it.fail(c, sender, err)
		return
	}
	it.reply(sender, &cmid.Done{EventBase: it.base(), Command: c})
}
