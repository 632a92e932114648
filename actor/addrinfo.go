package actor

import (
	"context"
	"net/netip"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// lookUp is rdma_getaddrinfo(3) for cmd, which waits in asked. What cannot wait is done at once;
// the rest on a goroutine of its own, since a name server may take its time.
func (it *ident) lookUp(cmd Command, node, service string, hints *cmid.AddrInfo, then func([]cmid.AddrInfo, error)) {
	if literal(node, service) {
		then(it.rt.resolve(context.Background(), node, service, hints))
		return
	}
	ctx, box := it.rt.lookups, it.box
	timeout := it.rt.cfg.Timeouts.Connect
	it.rt.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		info, err := it.rt.resolve(ctx, node, service, hints)
		box.PostUserMessage(&lookedUp{cmd, info, err, then})
	})
}

// lookedUp goes on with the command, if it still waits.
func (it *ident) lookedUp(m *lookedUp) {
	for _, a := range it.asked {
		if a.cmd == m.cmd && !it.ending() {
			m.then(m.info, m.err)
			return
		}
	}
}

// literal reports whether a look-up needs nobody's answer.
func literal(node, service string) bool {
	if _, err := netip.ParseAddr(node); err != nil && node != "" {
		return false
	}
	_, err := strconv.ParseUint(service, 10, 16)
	return err == nil || service == ""
}

func (it *ident) getAddrInfo(c *cmid.GetAddrInfo, sender *actor.PID) {
	a := &asked{cmd: c, sender: sender}
	it.asked = append(it.asked, a)
	it.lookUp(c, c.Node, c.Service, c.Hints, func(info []cmid.AddrInfo, err error) {
		if err != nil {
			it.answer(c, it.addrInfoError(c, err))
			return
		}
		it.answer(c, &cmid.AddrInfoResolved{EventBase: it.base(), Info: info})
	})
	it.setDeadline(a)
}

func (it *ident) addrInfoError(cmd Command, err error) Failure {
	return &cmid.AddrInfoError{FailureBase: it.failure(cmd, opName(cmd), err)}
}
