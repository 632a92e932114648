package actor

import (
	"slices"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/states"
)

// publish stores the identifier's present state for other goroutines. Loop goroutine.
func (it *ident) publish() {
	l := it.l
	if _, here := l.ids[it]; !here {
		return
	}
	now := it.describe()
	l.known.mu.Lock()
	defer l.known.mu.Unlock()
	k := l.known.ids[it.box]
	if k == nil {
		if l.known.ids == nil {
			l.known.ids = make(map[*mailbox.Mailbox]*knownID)
		}
		k = new(knownID)
		l.known.ids[it.box] = k
	}
	now.said = k.said
	*k = now
}

// describe returns the identifier's present state.
func (it *ident) describe() knownID {
	k := knownID{pid: it.pid, owner: it.owner.pid, listened: it.listened}
	if it.id == nil {
		return k
	}
	in, now := it.id.Info(), it.l.el.Now()
	k.id, k.state, k.local, k.peer, k.device = it.id.Handle(), it.id.State(), in.Local, in.Peer, in.Device
	k.born, k.entered = now.Add(-it.id.Age()), now.Add(-it.id.InState())
	if it.ending() {
		k.state = states.Destroying // it waits for the goodbye
	}
	if k.state == states.Listening {
		k.listened = it.counts()
	}
	return k
}

// identity returns the part of an identifier's information that it publishes.
func (it *ident) identity() IDInfo {
	k := it.describe()
	return k.info(it.l.el.Name(), it.l.el.Now())
}

// counts returns a listener's counters. The first call creates them.
func (it *ident) counts() *listening {
	if it.listened == nil {
		it.listened = new(listening)
	}
	return it.listened
}

func (it *ident) info() IDInfo {
	i := it.identity()
	i.Mailbox, i.Memory, i.AsOf = it.box.UserMessageCount(), it.memory(), it.l.el.Now()
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
		if s := c.Suite(); s != 0 {
			i.Security, i.Identity, i.Mode = s.String(), it.who, it.cfg.Security.Mode
			i.KeyUpdates, i.PeerKeyUpdates = c.KeyUpdates()
		}
	}
	return i
}

func (it *ident) listenerInfo() ListenerInfo {
	i := *it.listened.info()
	i.Strangers, i.Starved = it.id.Strangers(), it.id.Starved()
	return i
}

// memory returns how many bytes of AllocMemory there are.
func (it *ident) memory() int {
	if it.home == nil {
		return 0
	}
	return it.home.bytes
}
