package main

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// hallKind is the kind of the grains that are rooms. The identity is the room's name.
const hallKind = "room"

// hall is a room as a grain. It watches who is in it, and they watch it: when it is made anew on
// another member, they enter again, and nobody is notified. It has no history then. It never
// blocks, and runs on the runtime's loops.
type hall struct {
	room   *room.Room
	names  *room.Directory // of who is in this room
	guests map[string]*guest
	said   uint64
}

// guest is somebody in a room.
type guest struct {
	pid    *actor.PID
	member *room.Member
	n      uint64 // lines sent to them
}

func newHall() actor.Actor {
	return &hall{names: room.NewDirectory(), guests: make(map[string]*guest)}
}

// Receive handles what people ask. The Sender is the person.
func (h *hall) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *cluster.ClusterInit:
		h.room = room.New(m.Identity.Identity)
	case *actor.Terminated:
		h.lost(ctx, m)
	case *enter:
		h.enter(ctx, m)
	case *leave:
		h.leave(ctx, ctx.Sender(), m.How)
		answer(ctx, &bye{})
	default:
		if g := h.guests[key(ctx.Sender())]; g != nil {
			h.ask(ctx, g, m)
		}
	}
}

// ask handles what somebody in the room asks, and answers that it was taken.
func (h *hall) ask(ctx actor.Context, g *guest, m any) {
	switch m := m.(type) {
	case *say:
		h.said++
		h.deliver(ctx, h.room.Say(g.member, m.Text, true))
	case *whoIsHere:
		h.deliver(ctx, h.room.Who(g.member))
	case *renamed:
		old := g.member.Nick
		if err := h.names.Take(g.member, m.Nick); err != nil {
			answer(ctx, &refused{err.Error()})
			break
		}
		h.deliver(ctx, h.room.Renamed(g.member, old))
	}
	answer(ctx, &took{})
}

// enter lets somebody in. The directory has granted the name. Two people have it only while one of
// them is lost and this room does not know that yet, or after a partition: then the later one has
// to try again.
func (h *hall) enter(ctx actor.Context, m *enter) {
	pid := ctx.Sender()
	if pid == nil || h.guests[key(pid)] != nil {
		return
	}
	g := &guest{pid: pid, member: &room.Member{}}
	g.member.Conn = g
	if err := h.names.Take(g.member, m.Nick); err != nil {
		answer(ctx, &refused{err.Error()})
		return
	}
	h.guests[key(pid)] = g
	ctx.Watch(pid)
	switch m.Lost {
	case "":
		h.deliver(ctx, h.room.Enter(g.member))
	case key(ctx.Self()): // it is the link that was lost
		h.deliver(ctx, h.room.Return(g.member, int(min(h.said-min(h.said, m.Seen), room.HistoryLen)), "is back"))
	default: // what was said since this room was made
		h.deliver(ctx, h.room.Return(g.member, room.HistoryLen, ""))
	}
}

// lost takes somebody out whose process, or whose link, has gone.
func (h *hall) lost(ctx actor.Context, m *actor.Terminated) {
	how := "left"
	if m.Why == actor.TerminatedReason_AddressTerminated {
		how = "is lost"
	}
	h.leave(ctx, m.Who, how)
}

// leave takes somebody out. A room that nobody is in ends: it is made anew for who enters next. The
// lobby stays.
func (h *hall) leave(ctx actor.Context, pid *actor.PID, how string) {
	g := h.guests[key(pid)]
	if g == nil {
		return
	}
	delete(h.guests, key(pid))
	ctx.Unwatch(pid)
	h.names.Give(g.member)
	h.deliver(ctx, h.room.Exit(g.member, "%s %s", g.member.Nick, how))
	if len(h.guests) == 0 && h.room.Name != room.Lobby {
		ctx.Poison(ctx.Self())
	}
}

func (h *hall) deliver(ctx actor.Context, out []room.Delivery) {
	for _, d := range out {
		g := d.To.Conn.(*guest)
		g.n++
		ctx.Request(g.pid, &heard{g.n, h.said, d.Line})
	}
}

// key is what a PID is found by.
func key(pid *actor.PID) string { return pid.GetAddress() + "/" + pid.GetId() }

// answer answers the Sender, who sees whom the answer is from.
func answer(ctx actor.Context, msg any) {
	if ctx.Sender() != nil {
		ctx.Request(ctx.Sender(), msg)
	}
}
