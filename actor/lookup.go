package actor

import (
	"context"
	"net/netip"
	"slices"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// lookUp is rdma_getaddrinfo(3) for a command that waits. A look-up of literals is done
// immediately. Any other has a goroutine, since a name server may take its time.
func (t *commandTable) lookUp(p *cmid.Pending, node, service string, hints *cmid.AddrInfo, then func([]cmid.AddrInfo, error)) {
	if literal(node, service) {
		then(t.l.rt.resolve(context.Background(), node, service, hints))
		return
	}
	ctx, box := t.l.rt.lookups, t.box
	timeout := t.l.rt.cfg.Timeouts.Connect
	t.l.rt.running.Add(1)
	t.l.rt.Scheduler().Go(func() {
		defer t.l.rt.running.Done()
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		info, err := t.l.rt.resolve(ctx, node, service, hints)
		t.l.rt.Scheduler().Resume()
		box.PostUserMessage(&lookedUp{p, info, err, then})
	})
}

// lookedUp continues the command, if it still waits.
func (t *commandTable) lookedUp(m *lookedUp) {
	if !t.ending() && slices.Contains(t.id.Pending(), m.of) {
		m.then(m.info, m.err)
	}
}

// literal reports whether a look-up needs no name server.
func literal(node, service string) bool {
	if _, err := netip.ParseAddr(node); err != nil && node != "" {
		return false
	}
	_, err := strconv.ParseUint(service, 10, 16)
	return err == nil || service == ""
}

func (t *commandTable) getAddrInfo(c *cmid.GetAddrInfo, sender *actor.PID) {
	p := t.expect(c, sender)
	p.Due = t.l.el.Now().Add(t.l.rt.cfg.Timeouts.phase(c))
	t.rearm()
	t.lookUp(p, c.Node, c.Service, c.Hints, func(info []cmid.AddrInfo, err error) {
		if err != nil {
			p.Answer(t.addrInfoError(c, err))
			return
		}
		p.Answer(&cmid.AddrInfoResolved{EventBase: t.base(), Info: info})
	})
}

func (e *endpoint) addrInfoError(cmd Command, err error) Failure {
	return &cmid.AddrInfoError{FailureBase: e.failure(cmd, opName(cmd), err)}
}
