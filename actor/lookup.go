package actor

import (
	"context"
	"net/netip"
	"slices"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// lookUp runs rdma_getaddrinfo(3) for a command that waits. A look-up of literals is done
// immediately. Any other has a goroutine, since a name server may take its time.
func (t *commandTable) lookUp(p *cmid.Pending, node, service string, hints *cmid.AddrInfo, then func([]cmid.AddrInfo, error)) {
	if isLiteral(node, service) {
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

// handleLookedUp continues the command, if it still waits.
func (t *commandTable) handleLookedUp(m *lookedUp) {
	if !t.isEnding() && slices.Contains(t.id.Pending(), m.of) {
		m.then(m.info, m.err)
	}
}

// isLiteral reports whether a look-up needs no name server.
func isLiteral(node, service string) bool {
	if _, err := netip.ParseAddr(node); err != nil && node != "" {
		return false
	}
	_, err := strconv.ParseUint(service, 10, 16)
	return err == nil || service == ""
}

func (t *commandTable) getAddrInfo(c *cmid.GetAddrInfo, sender *actor.PID) {
	p := t.expectCommand(c, sender)
	p.Due = t.l.el.Now().Add(t.l.rt.cfg.Timeouts.forCommand(c))
	t.resetTimer()
	t.lookUp(p, c.Node, c.Service, c.Hints, func(info []cmid.AddrInfo, err error) {
		if err != nil {
			p.Answer(t.addrInfoError(c, err))
			return
		}
		p.Answer(&cmid.AddrInfoResolved{EventBase: t.eventBase(), Info: info})
	})
}

func (e *endpoint) addrInfoError(cmd Command, err error) Failure {
	return &cmid.AddrInfoError{FailureBase: e.failureBase(cmd, opName(cmd), err)}
}
