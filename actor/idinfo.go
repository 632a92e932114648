package actor

import (
	"slices"

	"github.com/rdmactor/rdmactor/states"
)

// publish stores the identifier's present state for other goroutines. Loop goroutine.
func (b *outbox) publish() { b.l.known.update(b.box, b.describe()) }

// describe returns the identifier's present state.
func (b *outbox) describe() knownID {
	k := knownID{pid: b.pid, owner: b.owner.pid, listened: b.listened}
	if b.id == nil {
		return k
	}
	in, now := b.id.Info(), b.l.el.Now()
	k.id, k.state, k.local, k.peer, k.device = b.id.Handle(), b.id.State(), in.Local, in.Peer, in.Device
	k.born, k.entered = now.Add(-b.id.Age()), now.Add(-b.id.InState())
	if b.ending() {
		k.state = states.Destroying // it waits for the goodbye
	}
	if k.state == states.Listening {
		k.listened = b.counts()
	}
	return k
}

// info returns Inspect's report.
func (it *ident) info() IDInfo {
	now := it.l.el.Now()
	known := it.describe()
	i := known.info(it.l.el.Name(), now)
	i.Mailbox, i.Memory, i.AsOf = it.box.UserMessageCount(), it.tenancy.used(), now
	if it.listened != nil {
		i.Listener = it.listened.info()
	}
	if it.id != nil {
		i.History, i.Path = it.id.History(), it.id.Path()
		if i.Listener != nil {
			i.Listener.Strangers, i.Listener.Starved = it.id.Strangers(), it.id.Starved()
		}
	}
	for _, c := range slices.Backward(it.life.closers) {
		if !c.silent {
			i.Waiting = opName(c.cmd)
		}
	}
	for _, p := range slices.Backward(it.pending()) {
		if !p.Inner {
			i.Waiting = opName(p.Command)
		}
	}
	if c := it.conn; c != nil {
		i.Wire, i.Credits, i.Traffic, i.Delivered = c.Kind().String(), c.Counts(), c.Traffic(), c.Delivered()
		if s := c.Sec.Suite(); s != 0 {
			i.Security, i.Identity, i.Mode = s.String(), it.who, it.cfg.Security.Mode
			i.KeyUpdates, i.PeerKeyUpdates = c.Sec.KeyUpdates()
		}
	}
	return i
}

func (e *endpoint) listenerInfo() ListenerInfo {
	i := *e.listened.info()
	i.Strangers, i.Starved = e.id.Strangers(), e.id.Starved()
	return i
}
