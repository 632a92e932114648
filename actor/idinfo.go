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
	now := l.el.Now()
	k := &knownID{is: it.identity(), listened: it.listened}
	k.born, k.entered = now.Add(-k.is.Age), now.Add(-k.is.InState)
	l.known.mu.Lock()
	defer l.known.mu.Unlock()
	if was := l.known.ids[it.box]; was != nil {
		k.said = was.said
	}
	if l.known.ids == nil {
		l.known.ids = make(map[*mailbox.Mailbox]*knownID)
	}
	l.known.ids[it.box] = k
}

// identity returns the part of an identifier's information that it publishes.
func (it *ident) identity() IDInfo {
	i := IDInfo{PID: it.pid, Owner: it.owner.pid, Loop: it.l.el.Name()}
	if it.id == nil {
		return i
	}
	in := it.id.Info()
	i.ID, i.State, i.InState, i.Age = it.id.Handle(), it.id.State(), it.id.InState(), it.id.Age()
	if it.ending() {
		i.State = states.Destroying // it waits for the goodbye
	}
	i.Local, i.Peer, i.Device = in.Local, in.Peer, in.Device
	if i.State == states.Listening {
		it.counts()
	}
	return i
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
