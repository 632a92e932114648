package main

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	rdma "github.com/rdmactor/rdmactor/actor"
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
	recent recent
	empty  int // counts how often the room got empty
}

// unused ends a room that has been empty since.
type unused struct{ empty int }

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
	case *unused:
		if m.empty == h.empty && len(h.guests) == 0 {
			ctx.Poison(ctx.Self())
		}
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
		h.say(ctx, g, m.Text)
	case *whoIsHere:
		h.deliver(ctx, h.room.Who(g.member))
	case *renamed:
		old := g.member.Nick
		if err := h.names.Take(g.member, m.Nick); err != nil {
			answer(ctx, &refused{err.Error()})
			break
		}
		h.note(ctx, g, "%s is now %s", old, g.member.Nick)
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
		h.note(ctx, g, "%s joined", g.member.Nick)
		h.deliver(ctx, h.room.Enter(g.member))
	case key(ctx.Self()): // it is the link that was lost
		h.note(ctx, g, "%s is back", g.member.Nick)
		h.deliver(ctx, h.room.Return(g.member, "is back"))
		h.again(ctx, g, m.Seen)
	default:
		h.deliver(ctx, h.room.Return(g.member, ""))
		h.again(ctx, g, 0)
	}
}

// say delivers a line to the others.
func (h *hall) say(ctx actor.Context, g *guest, text string) {
	if text != "" {
		l := room.Line{Type: "say", From: g.member.Nick, Room: h.room.Name, Text: text}
		h.recent.add(rdma.LocalOf(ctx).Now(), key(g.pid), l)
		h.deliver(ctx, h.room.Say(g.member, text, true))
	}
}

// note keeps a notice about somebody that the others get.
func (h *hall) note(ctx actor.Context, g *guest, format string, args ...any) {
	h.recent.add(rdma.LocalOf(ctx).Now(), key(g.pid), room.Notice(h.room.Name, format, args...))
}

// again delivers to somebody who returns what the room has sent since the line of that number, and
// says how much of that is not there any more.
func (h *hall) again(ctx actor.Context, g *guest, seen uint64) {
	lines, missed := h.recent.since(seen)
	if missed > 0 {
		h.deliver(ctx, []room.Delivery{g.member.Notice("%s left out", room.Plural(int(missed), "line"))})
	}
	for _, l := range lines {
		if l.but != key(g.pid) {
			h.deliver(ctx, []room.Delivery{{To: g.member, Line: l.line}})
		}
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

// leave takes somebody out. A room that nobody is in ends after a while, when nobody can return to
// it any more. The lobby stays.
func (h *hall) leave(ctx actor.Context, pid *actor.PID, how string) {
	g := h.guests[key(pid)]
	if g == nil {
		return
	}
	delete(h.guests, key(pid))
	ctx.Unwatch(pid)
	h.names.Give(g.member)
	h.note(ctx, g, "%s %s", g.member.Nick, how)
	h.deliver(ctx, h.room.Exit(g.member, "%s %s", g.member.Nick, how))
	if len(h.guests) == 0 && h.room.Name != room.Lobby {
		h.empty++
		rdma.After(ctx, recentFor, &unused{h.empty})
	}
}

func (h *hall) deliver(ctx actor.Context, out []room.Delivery) {
	for _, d := range out {
		g := d.To.Conn.(*guest)
		g.n++
		ctx.Request(g.pid, &heard{g.n, h.recent.sent, d.Line})
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
