package actor

import "slices"

// idInfo returns Inspect's report.
func (it *ident) idInfo() IDInfo {
	now := it.l.el.Now()
	known := it.describeID()
	i := known.idInfo(it.l.el.Name(), now)
	i.Mailbox, i.Memory, i.AsOf = it.box.UserMessageCount(), it.tenancy.usedBytes(), now
	if it.listened != nil {
		i.Listener = it.listened.listenerInfo()
	}
	if it.id != nil {
		i.History, i.Path = it.id.History(), it.id.Path()
		if i.Listener != nil {
			i.Listener.Strangers, i.Listener.Starved = it.id.Strangers(), it.id.Starved()
		}
	}
	for _, c := range slices.Backward(it.closers) {
		if !c.silent {
			i.Waiting = opName(c.cmd)
		}
	}
	for _, p := range slices.Backward(it.pendingCommands()) {
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
