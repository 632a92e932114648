package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// dialing is a Dial under way.
type dialing struct {
	it    *ident
	cmd   *Dial
	addrs []AddrInfo // the one being tried first
	spent bool       // an address was tried: the next one needs a new identifier
}

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
	d := &dialing{it: it, cmd: c}
	it.lookUp(c, node, service, &AddrInfo{PortSpace: it.id.PortSpace(), Src: c.Src}, func(info []AddrInfo, err error) {
		if err != nil {
			d.fail(it.addrInfoError(c, err))
			return
		}
		d.addrs = info
		d.next()
	})
}

// composite checks what Dial and Serve ask for. They want an idle identifier, because a further address needs a new one.
func (it *ident) composite(cmd Command, addr string, sender *actor.PID) (node, service string, ok bool) {
	node, service, err := splitAddr(addr)
	switch s := it.id.State(); {
	case s != states.Idle:
		err = fmt.Errorf("%v: %s wants a new identifier: %w", s, opName(cmd), unix.EINVAL)
	case it.composed:
		err = fmt.Errorf("another Dial or Serve is in progress: wait for its answer, or send DestroyID: %w", unix.EBUSY)
	case err != nil:
		err = fmt.Errorf("address %q: %w: want HOST:PORT (%w)", addr, err, unix.EINVAL)
	case service == "":
		err = fmt.Errorf("address %q: want HOST:PORT (%w)", addr, unix.EINVAL)
	default:
		it.composed = true
		return node, service, true
	}
	it.fail(cmd, sender, err)
	return "", "", false
}

// next tries an address.
func (d *dialing) next() {
	it := d.it
	if d.spent {
		if err := it.renew(); err != nil {
			d.fail(&cmid.CommandFailed{FailureBase: it.failure(d.cmd, opName(d.cmd), err)})
			return
		}
	}
	d.spent = true
	ai := d.addrs[0]
	timeouts := &it.rt.cfg.timeouts
	d.step(&cmid.ResolveAddr{Src: ai.Src, Dst: ai.Dst, Timeout: timeouts.Address}, func() {
		d.step(&cmid.ResolveRoute{Timeout: timeouts.Route}, func() {
			it.connect(&cmid.Connect{PrivateData: ai.PrivateData(d.cmd.PrivateData), Param: d.cmd.Param}, nil, d.connected)
		})
	})
}

func (d *dialing) step(cmd Command, then func()) {
	d.it.do(&asked{cmd: cmd, then: func(ev Event) {
		if f, ok := ev.(Failure); ok {
			d.failed(f)
			return
		}
		then()
	}})
}

func (d *dialing) connected(ev Event) {
	if f, ok := ev.(Failure); ok {
		d.failed(f)
		return
	}
	d.it.composed = false
	d.it.answer(d.cmd, ev)
}

// failed goes on with the next address, unless it was the peer's application that said no, or there is none.
func (d *dialing) failed(f Failure) {
	if r, ok := f.(*cmid.Rejected); ok && !nobodyListens(r.Reason) {
		d.addrs = d.addrs[:1]
	}
	if d.it.ending || len(d.addrs) <= 1 {
		d.fail(f)
		return
	}
	d.addrs = d.addrs[1:]
	d.next()
}

func nobodyListens(r RejectReason) bool {
	return r == RejectInvalidServiceID || r == RejectRefused
}

// fail answers the Dial; the identifier goes with it.
func (d *dialing) fail(f Failure) {
	d.it.answer(d.cmd, restore(f, d.cmd))
	d.it.destroy(f)
}

// renew gives the actor a new identifier in place of one that is used up.
func (it *ident) renew() error {
	old := it.id
	id, err := it.l.ch.CreateID(it.opts.ps)
	if err != nil {
		return err
	}
	old.Context = nil
	it.conn, it.id, id.Context = nil, id, it
	old.Do(&cmid.DestroyID{})
	it.moved(states.OpDestroyID)
	for _, o := range it.options {
		id.Do(o) // what was refused is refused again
	}
	return nil
}
