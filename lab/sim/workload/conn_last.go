package workload

import (
	"errors"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// lastWords sends messages right before the end is requested, in some ways more than fit into a
// small mailbox. Some may find no room. None may be refused because of the end that follows.
func (e *connEnd) lastWords(op connOp) {
	n := [...]int{0, 140, 20}[op.way/6%3]
	if n == 0 || e.closed || e.c.spec.sides[1].hoard > 0 {
		return
	}
	const group = "last words"
	c := e.c
	orderly := e.established && !e.ended && !c.ending
	sender := e.h.newAddress(group, func(msg any) {
		m, failed := msg.(*rdma.SendFailed)
		if orderly && failed && errors.Is(m, unix.ESHUTDOWN) && !e.dead && !c.isDisturbed() {
			c.w.e.failWorld("%v: %s was sent before the end was asked for: %v", c.w.now(), e.key, m)
		}
		e.recordFate(group, msg)
	})
	for range n {
		e.h.root.RequestWithCustomSender(e.id, e.newMessage(group, min(lastWord, e.max), false, true), sender)
	}
}

// lastWord is the length of each message.
const lastWord = 16
