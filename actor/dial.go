package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// dial connects, in the steps that librdmacm has for it.
func (it *ident) dial(c *Dial, sender *actor.PID) {
	node, service, ok := it.composite(c, c.Addr, sender)
	if !ok {
		return
	}
	a := &asked{cmd: c, sender: sender}
	if c.Timeout > 0 {
		a.due = it.l.el.Now().Add(c.Timeout)
	}
	it.asked = append(it.asked, a)
	it.rearm()
	t := &attempts{it: it, cmd: c}
	t.try = func(ai AddrInfo) {
		timeouts := &it.rt.cfg.timeouts
		t.step(&cmid.ResolveAddr{Src: ai.Src, Dst: ai.Dst, Timeout: timeouts.Address}, func() {
			t.step(&cmid.ResolveRoute{Timeout: timeouts.Route}, func() {
				connect := &cmid.Connect{PrivateData: ai.PrivateData(c.PrivateData), Param: c.Param}
				it.connect(connect, nil, t.outcome)
			})
		})
	}
	it.lookUp(c, node, service, &AddrInfo{PortSpace: it.id.PortSpace(), QPType: it.opts.qpType, Src: c.Src}, t.begin)
}
