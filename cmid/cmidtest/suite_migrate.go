package cmidtest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// migrationScenarios are rdma_migrate_id(3): identifiers that change channels, of one loop, and in two halves as between loops.
var migrationScenarios = scenarios{
	"a new identifier": func(w *world) {
		w.needMigration()
		w.listener(tcp, any4(0))
		id := w.a.create(tcp)
		w.migrate(w.a, id)
		w.must(id.BindAddr(at(w.rig.Local, 0)))
		w.must(id.ResolveAddr(cmid.Addr{}, w.target(), time.Second))
		toldBy[*cmid.AddrResolved](w.a, id, w.a.extra)
	},
	"while it resolves": func(w *world) {
		w.needMigration()
		w.listener(tcp, any4(0))
		id := w.a.create(tcp)
		w.must(id.ResolveAddr(cmid.Addr{}, w.target(), time.Second))
		w.migrate(w.a, id)
		toldBy[*cmid.AddrResolved](w.a, id, w.a.extra)
		w.must(id.ResolveRoute(time.Second))
		if w.rig.Clock == nil {
			time.Sleep(w.quietFor) // the answer is there, and unread
		}
		w.must(id.Migrate(w.a.ch))
		toldBy[*cmid.RouteResolved](w.a, id, w.a.ch)
		w.quiet("each answer comes once")
	},
	"while it connects": func(w *world) {
		w.needMigration()
		c, _ := w.requested(0, nil, nil)
		w.until("connect to return", func() bool { return c.active.Migrate(w.a.other()) == nil })
		w.migrate(w.b, c.passive)
		c.bq = w.queues(c.passive, 1)
		w.must(c.passive.Accept(nil, nil))
		toldBy[*cmid.Established](w.a, c.active, w.a.extra)
		toldBy[*cmid.Established](w.b, c.passive, w.b.extra)
		w.must(c.aq.postSend(0, "moved"))
		w.until("it", func() bool { return len(c.bq.of(verbs.Recv)) == 1 })
	},
	"connected": func(w *world) {
		w.needMigration()
		c := w.connected(ringDepth)
		w.must(c.aq.postSend(0, "before"))
		w.migrate(w.a, c.active)
		w.migrate(w.b, c.passive)
		w.must(c.aq.postSend(1, "behind"))
		w.must(c.bq.postSend(0, "back"))
		w.until("the messages", func() bool { return len(c.bq.of(verbs.Recv)) == 2 && len(c.aq.of(verbs.Recv)) == 1 })
		if got := string(c.bq.slot(0)[:6]) + " " + string(c.bq.slot(1)[:6]); got != "before behind" {
			w.Errorf("received %q: messages stay in order", got)
		}
		w.must(c.passive.Disconnect())
		toldBy[*cmid.Disconnected](w.a, c.active, w.a.extra)
		if !w.iwarp {
			w.must(c.active.Disconnect())
		}
		toldBy[*cmid.Disconnected](w.b, c.passive, w.b.extra)
	},
	"a listener with unread requests": func(w *world) {
		w.needMigration()
		const n = 3
		l := w.listener(tcp, any4(0))
		clients := make(map[string]*cmid.ID)
		for i := range n {
			name := fmt.Sprintf("client %d", i)
			clients[name] = w.resolved(tcp, w.target())
			w.queues(clients[name], 0)
		}
		for name, id := range clients {
			w.must(id.Connect([]byte(name), nil))
		}
		w.activeOnly()
		w.migrate(w.b, l)
		children := make(map[*cmid.ID]*cmid.ID)
		for range n {
			ev, ch := nextFrom[*cmid.ConnectRequest](w.b, nil)
			child := w.b.extra.ID(ev.Ident())
			if ch != w.b.extra || child == nil {
				w.Fatalf("a request was told by the old channel (%v), or its identifier stayed there", ch == w.b.ch)
			}
			name := string(ev.PrivateData[:len("client 0")])
			client := clients[name]
			if delete(clients, name); client == nil || child.PeerAddr() != client.LocalAddr() {
				w.Fatalf("a request of %q from %v", name, child.PeerAddr())
			}
			children[child] = client
		}
		for child, client := range children {
			w.queues(child, 0)
			w.must(child.Accept(nil, nil))
			next[*cmid.Established](w.a, client)
			toldBy[*cmid.Established](w.b, child, w.b.extra)
		}
	},
	"a listener whose request was read": func(w *world) {
		w.needMigration()
		c, _ := w.requested(0, nil, nil)
		w.migrate(w.b, c.listener)
		if w.b.ch.ID(c.passive.Handle()) != c.passive {
			w.Error("an identifier that was read stays where it is")
		}
		w.queues(c.passive, 0)
		w.must(c.passive.Accept(nil, nil))
		next[*cmid.Established](w.a, c.active)
		toldBy[*cmid.Established](w.b, c.passive, w.b.ch)
		child := w.reaches(at(w.rig.Address, w.port))
		if child != nil {
			w.Error("a new request was told by the old channel")
		}
	},
	"the old channel is closed": func(w *world) {
		w.needMigration()
		l := w.listener(tcp, any4(0))
		w.migrate(w.b, l)
		w.must(w.b.ch.Close())
		w.b.ch, w.b.extra = w.b.extra, nil
		c := &link{listener: l, passive: w.reaches(at(w.rig.Address, w.port))}
		w.must(c.passive.Reject(nil))
		w.wantErr("the reject", next[*cmid.Rejected](w.a, nil), unix.ECONNREFUSED)
	},
	"a request in two halves": func(w *world) {
		w.needMigration()
		c, _ := w.requested(0, nil, nil)
		d := w.detach(c.passive)
		w.quiet("between the halves")
		w.must(w.b.other().Attach(d))
		if w.b.extra.ID(c.passive.Handle()) != c.passive || c.passive.PeerAddr() != c.active.LocalAddr() {
			w.Errorf("the new channel has %v, whose peer is %v", w.b.extra.ID(c.passive.Handle()), c.passive.PeerAddr())
		}
		w.wantErr("attaching it again", w.b.ch.Attach(d), unix.EINVAL)
		c.bq = w.queues(c.passive, 1)
		w.must(c.passive.Accept(nil, nil))
		next[*cmid.Established](w.a, c.active)
		toldBy[*cmid.Established](w.b, c.passive, w.b.extra)
		w.must(c.aq.postSend(0, "moved"))
		w.until("it", func() bool { return len(c.bq.of(verbs.Recv)) == 1 })
	},
	"a request that comes back": func(w *world) {
		w.needMigration()
		c, _ := w.requested(0, nil, nil)
		d := w.detach(c.passive)
		w.must(w.b.other().Close())
		w.wantErr("attach to a closed channel", w.b.extra.Attach(d), unix.EINVAL)
		w.b.extra = nil
		w.must(w.b.ch.Attach(d))
		w.queues(c.passive, 0)
		w.must(c.passive.Accept(nil, nil))
		next[*cmid.Established](w.a, c.active)
		toldBy[*cmid.Established](w.b, c.passive, w.b.ch)
	},
	"a request whose peer goes between the halves": func(w *world) {
		w.needMigration()
		c, _ := w.requested(0, nil, nil)
		d := w.detach(c.passive)
		w.must(c.active.Destroy())
		w.quiet("between the halves")
		w.must(w.b.other().Attach(d))
		w.settle()
		w.queues(c.passive, 0)
		if c.passive.Accept(nil, nil) == nil { // else it is known already
			w.until("the end", func() bool { return len(w.b.heard) > 0 && w.b.heard[len(w.b.heard)-1].id == c.passive })
			w.b.heard = nil
		}
	},
	"a request that no channel takes": func(w *world) {
		w.needMigration()
		c, _ := w.requested(0, nil, nil)
		d := w.detach(c.passive)
		d.Destroy()
		w.wantErr("the connect", next[*cmid.Rejected](w.a, c.active), unix.ECONNREFUSED)
		w.wantErr("attaching it after all", w.b.ch.Attach(d), unix.EINVAL)
		w.wantErr("accepting it", c.passive.Accept(nil, nil), unix.ENOENT)
	},
	"only requests in two halves": func(w *world) {
		w.needMigration()
		c, _ := w.requested(0, nil, nil)
		for _, id := range []*cmid.ID{c.listener, c.active} {
			_, err := id.Detach()
			w.wantErr("detach", err, unix.EINVAL)
		}
		w.queues(c.passive, 0)
		_, err := c.passive.Detach()
		w.wantErr("detach, with a queue pair", err, unix.EINVAL)
		w.must(c.passive.Accept(nil, nil))
		toldBy[*cmid.Established](w.b, c.passive, w.b.ch)
		next[*cmid.Established](w.a, c.active)
	},
	"to where it is": func(w *world) {
		id := w.a.create(tcp)
		w.must(id.Migrate(w.a.ch))
		w.must(id.BindAddr(any4(0)))
	},
	"a destroyed identifier": func(w *world) {
		id := w.a.create(tcp)
		w.must(id.Destroy())
		w.wantErr("migrate", id.Migrate(w.a.other()), unix.ENOENT)
	},
}

// needMigration skips where identifiers cannot change channels, after holding that the call says so.
func (w *world) needMigration() {
	w.Helper()
	if w.differs(NoMigration) {
		id := w.a.create(tcp)
		w.wantErr("migrate", id.Migrate(w.a.other()), unix.EOPNOTSUPP)
		w.wantState("afterwards", id, states.Idle)
		w.Skip("identifiers stay on their channel here")
	}
}

// migrate moves an identifier to the end's other channel.
func (w *world) migrate(e *end, id *cmid.ID) {
	w.Helper()
	w.must(id.Migrate(e.other()))
	if e.ch.ID(id.Handle()) != nil || e.extra.ID(id.Handle()) != id {
		w.Error("the identifier is not the new channel's alone")
	}
}

// detach takes a request's identifier off the passive end's channel.
func (w *world) detach(id *cmid.ID) *cmid.Detached {
	w.Helper()
	d, err := id.Detach()
	w.must(err)
	if w.b.ch.ID(id.Handle()) != nil {
		w.Error("the identifier is still the old channel's")
	}
	return d
}

// toldBy is next, by that channel.
func toldBy[E cmid.Event](e *end, id *cmid.ID, ch *cmid.Channel) {
	e.w.Helper()
	if ev, by := nextFrom[E](e, id); by != ch {
		e.w.Errorf("%T was told by the other channel", ev)
	}
}

// activeOnly lets the active side go on, and the devices, while the passive side's loop stands still and what comes for it is unread.
func (w *world) activeOnly() {
	w.Helper()
	for deadline := time.Now().Add(w.quietFor); ; time.Sleep(time.Millisecond) {
		for range turnsPerStep {
			w.must(w.a.l.Turn())
		}
		if w.rig.Clock != nil || time.Now().After(deadline) {
			return
		}
	}
}
