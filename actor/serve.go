package actor

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// serving is a Serve under way.
type serving struct {
	it    *ident
	cmd   *Serve
	addrs []AddrInfo // the one being tried first
	spent bool
}

// serve listens, in the steps that librdmacm has for it.
func (it *ident) serve(c *Serve, sender *actor.PID) {
	node, service, ok := it.composite(c, c.Addr, sender)
	if !ok {
		return
	}
	it.asked = append(it.asked, &asked{cmd: c, sender: sender})
	s := &serving{it: it, cmd: c}
	it.lookUp(c, node, service, &AddrInfo{Flags: cmid.RAIPassive, PortSpace: it.opts.ps}, func(info []AddrInfo, err error) {
		if err != nil {
			s.fail(it.addrInfoError(c, err))
			return
		}
		s.addrs = dualFirst(info)
		s.next()
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

// next tries an address.
func (s *serving) next() {
	it := s.it
	if s.spent {
		if err := it.renew(); err != nil {
			s.fail(&cmid.CommandFailed{FailureBase: it.failure(s.cmd, opName(s.cmd), err)})
			return
		}
	}
	s.spent = true
	it.do(&asked{cmd: &cmid.BindAddr{Addr: s.addrs[0].Src}, then: func(ev Event) {
		if f, ok := ev.(Failure); ok {
			s.failed(f)
			return
		}
		it.do(&asked{cmd: &cmid.Listen{Backlog: s.cmd.Backlog}, then: s.listening})
	}})
}

func (s *serving) listening(ev Event) {
	if f, ok := ev.(Failure); ok {
		s.failed(f)
		return
	}
	s.it.composed = false
	s.it.answer(s.cmd, ev)
}

func (s *serving) failed(f Failure) {
	if s.it.ending || len(s.addrs) <= 1 {
		s.fail(f)
		return
	}
	s.addrs = s.addrs[1:]
	s.next()
}

// fail answers the Serve; the identifier goes with it.
func (s *serving) fail(f Failure) {
	s.it.answer(s.cmd, restore(f, s.cmd))
	s.it.destroy(f)
}
