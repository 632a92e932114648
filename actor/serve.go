package actor

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// serve listens, in the steps that librdmacm has for it.
func (it *ident) serve(c *Serve, sender *actor.PID) {
	node, service, ok := it.composite(c, c.Addr, sender)
	if !ok {
		return
	}
	it.asked = append(it.asked, &asked{cmd: c, sender: sender})
	t := &attempts{it: it, cmd: c}
	t.try = func(ai AddrInfo) {
		t.step(&cmid.BindAddr{Addr: ai.Src}, func() {
			it.do(&asked{cmd: &cmid.Listen{Backlog: c.Backlog}, then: t.outcome})
		})
	}
	it.lookUp(c, node, service, &AddrInfo{Flags: cmid.RAIPassive, PortSpace: it.id.PortSpace(), QPType: it.opts.qpType}, func(info []AddrInfo, err error) {
		t.begin(dualFirst(info), err)
	})
}

// dualFirst puts :: before 0.0.0.0: it listens for both families, unless the host has no IPv6.
func dualFirst(info []AddrInfo) []AddrInfo {
	slices.SortStableFunc(info, func(a, b AddrInfo) int {
		switch dual := func(i AddrInfo) bool { return i.Src.IsWildcard() && i.Src.Addr().Is6() }; {
		case dual(a) == dual(b):
			return 0
		case dual(a):
			return -1
		}
		return 1
	})
	return info
}
