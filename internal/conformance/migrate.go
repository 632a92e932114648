package conformance

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// migrationScenarios test rdma_migrate_id(3). Identifiers change channels on one loop, and in two
// halves, as between loops.
var migrationScenarios = scenarios{
	"a new identifier": func(w *world) {
		id := w.A.Create(tcp)
		w.Migrate(w.A, id)
		w.Must(id.BindAddr(sides.At(w.rig.Local, 0)))
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), time.Second))
		sides.NextBy[*cmid.AddrResolved](w.A, id, w.A.Extra)
	},
	"while it resolves": func(w *world) {
		id := w.Resolving(tcp, w.Target())
		w.Migrate(w.A, id)
		sides.NextBy[*cmid.AddrResolved](w.A, id, w.A.Extra)
		w.Must(id.ResolveRoute(time.Second))
		if w.Clock == nil {
			time.Sleep(w.Quiet) // the answer has arrived, and is unread
		}
		w.Must(id.Migrate(w.A.Ch))
		sides.NextBy[*cmid.RouteResolved](w.A, id, w.A.Ch)
		w.WantQuiet("each answer comes once")
	},
	"while it connects": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Until("connect to return", func() bool { return c.Active.Migrate(w.A.Other()) == nil })
		w.Migrate(w.B, c.Passive)
		w.acceptsOn(c, w.A.Extra, w.B.Extra)
		w.Barrier(c.AQ, c.BQ)
	},
	"connected": func(w *world) {
		c := w.Connected(sides.Depth)
		w.Must(c.AQ.PostSend(0, "before"))
		w.Migrate(w.A, c.Active)
		w.Migrate(w.B, c.Passive)
		w.Must(c.AQ.PostSend(1, "behind"))
		w.Must(c.BQ.PostSend(0, "back"))
		w.Until("the messages", func() bool { return len(c.BQ.Of(verbs.Recv)) == 2 && len(c.AQ.Of(verbs.Recv)) == 1 })
		if got := string(c.BQ.Slot(0)[:6]) + " " + string(c.BQ.Slot(1)[:6]); got != "before behind" {
			w.Errorf("received %q: messages stay in order", got)
		}
		w.Must(c.Passive.Disconnect())
		sides.NextBy[*cmid.Disconnected](w.A, c.Active, w.A.Extra)
		w.Answer(c.Active)
		sides.NextBy[*cmid.Disconnected](w.B, c.Passive, w.B.Extra)
	},
	"a listener with unread requests": func(w *world) {
		const n = 3
		l := w.Listener(tcp, sides.Any4(0))
		clients := w.connectAll(n)
		w.ActiveOnly()
		w.Migrate(w.B, l)
		children := make(map[*cmid.ID]*cmid.ID)
		for range n {
			ev, ch := sides.NextFrom[*cmid.ConnectRequest](w.B, nil)
			child := w.B.Extra.ID(ev.Ident())
			if ch != w.B.Extra || child == nil {
				w.Fatalf("the old channel has delivered a request (%v), or its identifier stayed there", ch == w.B.Ch)
			}
			name := string(ev.PrivateData[:len("client 0")])
			client := clients[name]
			if delete(clients, name); client == nil || child.PeerAddr() != client.LocalAddr() {
				w.Fatalf("a request of %q from %v", name, child.PeerAddr())
			}
			children[child] = client
		}
		for child, client := range children {
			w.acceptsOn(&sides.Link{Active: client, Passive: child}, w.A.Ch, w.B.Extra)
		}
	},
	"a listener whose request was read": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Migrate(w.B, c.Listener)
		if w.B.Ch.ID(c.Passive.Handle()) != c.Passive {
			w.Error("an identifier that was read stays where it is")
		}
		w.acceptsOn(c, w.A.Ch, w.B.Ch)
		if w.Reaches(w.Target()) != nil {
			w.Error("the old channel has delivered a new request")
		}
	},
	"the old channel is closed": func(w *world) {
		l := w.Listener(tcp, sides.Any4(0))
		w.Migrate(w.B, l)
		w.Must(w.B.Ch.Close())
		w.B.Ch, w.B.Extra = w.B.Extra, nil
		c := &sides.Link{Listener: l, Passive: w.Reaches(w.Target())}
		w.Must(c.Passive.Reject(nil))
		w.WantErr("the reject", sides.Next[*cmid.Rejected](w.A, nil), unix.ECONNREFUSED)
	},
	"a request in two halves": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		d := w.Detach(c.Passive)
		w.WantQuiet("between the halves")
		w.Must(w.B.Other().Attach(d))
		if w.B.Extra.ID(c.Passive.Handle()) != c.Passive || c.Passive.PeerAddr() != c.Active.LocalAddr() {
			w.Errorf("the new channel has %v, whose peer is %v", w.B.Extra.ID(c.Passive.Handle()), c.Passive.PeerAddr())
		}
		w.WantErr("attaching it again", w.B.Ch.Attach(d), unix.EINVAL)
		w.acceptsOn(c, w.A.Ch, w.B.Extra)
		w.Barrier(c.AQ, c.BQ)
	},
	"a request that comes back": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		d := w.Detach(c.Passive)
		w.Must(w.B.Other().Close())
		w.WantErr("attach to a closed channel", w.B.Extra.Attach(d), unix.EINVAL)
		w.B.Extra = nil
		w.Must(w.B.Ch.Attach(d))
		w.acceptsOn(c, w.A.Ch, w.B.Ch)
	},
	"a request whose peer goes between the halves": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		d := w.Detach(c.Passive)
		w.Must(c.Active.Destroy())
		w.WantQuiet("between the halves")
		w.Must(w.B.Other().Attach(d))
		w.Settle()
		w.Queues(c.Passive, 0)
		if c.Passive.Accept(nil, nil) == nil { // it fails if the removal is already known
			w.Until("the end", func() bool { return len(w.B.Heard) > 0 && w.B.Heard[len(w.B.Heard)-1].ID == c.Passive })
			w.B.Heard = nil
		}
	},
	"a request that no channel takes": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		d := w.Detach(c.Passive)
		d.Destroy()
		w.WantErr("the connect", sides.Next[*cmid.Rejected](w.A, c.Active), unix.ECONNREFUSED)
		w.WantErr("attaching it after all", w.B.Ch.Attach(d), unix.EINVAL)
		w.WantErr("accepting it", c.Passive.Accept(nil, nil), unix.ENOENT)
	},
	"only requests in two halves": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		for _, id := range []*cmid.ID{c.Listener, c.Active} {
			w.WantErr("detach", sides.Err(id.Detach()), unix.EINVAL)
		}
		w.Queues(c.Passive, 0)
		w.WantErr("detach, with a queue pair", sides.Err(c.Passive.Detach()), unix.EINVAL)
		w.Must(c.Passive.Accept(nil, nil))
		sides.NextBy[*cmid.Established](w.B, c.Passive, w.B.Ch)
		sides.NextBy[*cmid.Established](w.A, c.Active, w.A.Ch)
	},
}.where((*world).needMigration).and(scenarios{
	"to where it is": func(w *world) {
		id := w.A.Create(tcp)
		w.Must(id.Migrate(w.A.Ch))
		w.Must(id.BindAddr(sides.Any4(0)))
	},
	"a destroyed identifier": func(w *world) {
		id := w.A.Create(tcp)
		w.Must(id.Destroy())
		w.WantErr("migrate", id.Migrate(w.A.Other()), unix.ENOENT)
	},
})

// acceptsOn accepts a request, and requires that these channels deliver Established.
func (w *world) acceptsOn(c *sides.Link, active, passive *cmid.Channel) {
	w.Helper()
	c.BQ = w.Queues(c.Passive, 1)
	w.Must(c.Passive.Accept(nil, nil))
	sides.NextBy[*cmid.Established](w.A, c.Active, active)
	sides.NextBy[*cmid.Established](w.B, c.Passive, passive)
}

// needMigration skips the scenario if identifiers cannot change channels. Migrate must then fail
// with EOPNOTSUPP. Otherwise needMigration returns true.
func (w *world) needMigration() bool {
	w.Helper()
	if w.hasDeviation(NoMigration) {
		id := w.A.Create(tcp)
		w.WantErrIn("migrate", id, id.Migrate(w.A.Other()), unix.EOPNOTSUPP, states.Idle)
		w.Skip("identifiers stay on their channel here")
	}
	return true
}
