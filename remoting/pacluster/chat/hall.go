package main

import (
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// hallKind is the kind of the grains that are rooms. The identity is the room's name.
const hallKind = "room"

// hall is a room as a grain. It watches the people in it, and they watch it: when it is made anew
// on another member, they enter again without a notice, and its history is empty. It never blocks,
// and runs on the runtime's loops.
type hall struct {
	room     *room.Room
	names    *room.Directory // names of the people in this room
	guests   map[string]*guest
	recent   recent
	empty    int  // counts how often the room got empty
	gathered bool // the time for people to return after the room was made anew is over
}

// gatherFor is how long people may take to return. Then the others learn which ones did not.
const gatherFor = 5 * time.Second

// The messages of a room to itself.
type (
	// unused ends the room if it has been empty since.
	unused   struct{ empty int }
	gathered struct{}
)

// guest is a person in a room.
type guest struct {
	backlog
	pid    *actor.PID
	member *room.Member
}

func newHall() actor.Actor {
	return &hall{names: room.NewDirectory(), guests: make(map[string]*guest)}
}

// Receive handles people's requests. The Sender is the person.
func (h *hall) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *cluster.ClusterInit:
		h.room = room.New(m.Identity.Identity)
		rdma.After(ctx, gatherFor, &gathered{})
	case *gathered:
		h.gathered = true
		h.complete(ctx)
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
	case *taken:
		h.taken(ctx, h.guests[key(ctx.Sender())], m.N)
	default:
		if g := h.guests[key(ctx.Sender())]; g != nil {
			h.ask(ctx, g, m)
		}
	}
}

// ask handles a guest's request, and answers that it was taken.
func (h *hall) ask(ctx actor.Context, g *guest, m any) {
	switch m := m.(type) {
	case *say:
		h.say(ctx, g, m.Text)
	case *whoIsHere:
		h.deliver(ctx, h.room.Who(g.member), change{})
	case *renamed:
		old := g.member.Nick
		if err := h.names.Take(g.member, m.Nick); err != nil {
			answer(ctx, &refused{err.Error()})
			break
		}
		h.renamed(ctx, g, old)
	}
	answer(ctx, &took{})
}

// enter lets a person in, whose name the directory has granted. Two people have the same name only
// while one of them is lost and this room does not know that yet, or after a partition: then the
// later one has to try again.
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
	came := change{Came: g.member.Nick}
	switch {
	case m.Lost == "":
		h.note(ctx, g, came, "%s joined", g.member.Nick)
		h.deliver(ctx, h.room.Enter(g.member), came)
		return
	case m.Lost == key(ctx.Self()), h.gathered: // only the link was lost, or they return late
		h.note(ctx, g, came, "%s is back", g.member.Nick)
		h.deliver(ctx, h.room.Return(g.member, "is back"), came)
	default:
		h.deliver(ctx, h.room.Return(g.member, ""), change{})
		if m.Was != "" && m.Was != g.member.Nick {
			h.renamed(ctx, g, m.Was)
		}
	}
	if m.Lost != key(ctx.Self()) {
		m.Seen = 0
	}
	h.again(ctx, g, m.Seen)
}

// renamed reports a guest's new name.
func (h *hall) renamed(ctx actor.Context, g *guest, old string) {
	c := change{Came: g.member.Nick, Went: old}
	h.note(ctx, g, c, "%s is now %s", old, g.member.Nick)
	h.deliver(ctx, h.room.Renamed(g.member, old), c)
}

// say delivers a line to the others.
func (h *hall) say(ctx actor.Context, g *guest, text string) {
	if text != "" {
		l := room.Line{Type: "say", From: g.member.Nick, Room: h.room.Name, Text: text}
		h.recent.add(rdma.LocalOf(ctx).Now(), key(g.pid), l, change{})
		h.deliver(ctx, h.room.Say(g.member, text, true), change{})
	}
}

// note keeps a notice about a guest for returning guests.
func (h *hall) note(ctx actor.Context, g *guest, c change, format string, args ...any) {
	h.recent.add(rdma.LocalOf(ctx).Now(), key(g.pid), room.Notice(h.room.Name, format, args...), c)
}

// again delivers the room's lines since number seen to a returning guest, and reports how many are
// missing.
func (h *hall) again(ctx actor.Context, g *guest, seen uint64) {
	lines, missed := h.recent.since(seen)
	if missed > 0 {
		h.deliver(ctx, []room.Delivery{g.member.Notice("%s left out", room.Plural(int(missed), "line"))}, change{})
	}
	for _, l := range lines {
		if l.but != key(g.pid) {
			h.deliver(ctx, []room.Delivery{{To: g.member, Line: l.line}}, l.change)
		}
	}
}

// lost removes a guest whose process or link is gone.
func (h *hall) lost(ctx actor.Context, m *actor.Terminated) {
	how := "left"
	if m.Why == actor.TerminatedReason_AddressTerminated {
		how = "is lost"
	}
	h.leave(ctx, m.Who, how)
}

// leave removes a guest. An empty room ends after a while, when no guest can return to it. The
// lobby stays.
func (h *hall) leave(ctx actor.Context, pid *actor.PID, how string) {
	g := h.guests[key(pid)]
	if g == nil {
		return
	}
	delete(h.guests, key(pid))
	ctx.Unwatch(pid)
	h.names.Give(g.member)
	went := change{Went: g.member.Nick}
	h.note(ctx, g, went, "%s %s", g.member.Nick, how)
	h.deliver(ctx, h.room.Exit(g.member, "%s %s", g.member.Nick, how), went)
	if len(h.guests) == 0 && h.room.Name != room.Lobby {
		h.empty++
		rdma.After(ctx, recentFor, &unused{h.empty})
	}
}

// deliver sends lines, as far as each person's window has room, with the change that they announce.
func (h *hall) deliver(ctx actor.Context, out []room.Delivery, c change) {
	for _, d := range out {
		m := &heard{Sent: h.recent.sent, Line: d.Line, change: c}
		if d.Line.Type == "you" {
			m.With, m.Whole = h.present()
		}
		g := d.To.Conn.(*guest)
		g.add(m)
		g.pump(ctx, g.pid)
	}
}

// present returns the people in the room, and whether that is all of them: others may still return.
// A room that is too crowded to announce arrivals and departures has no list.
func (h *hall) present() (with []string, whole bool) {
	if h.room.Crowded() {
		return nil, h.gathered
	}
	for _, g := range h.guests {
		with = append(with, g.member.Nick)
	}
	slices.Sort(with)
	return with, h.gathered
}

// complete sends everybody the list of guests.
func (h *hall) complete(ctx actor.Context, to ...*guest) {
	if to == nil {
		to = slices.Collect(maps.Values(h.guests))
	}
	with, whole := h.present()
	for _, g := range to {
		g.add(&heard{Sent: h.recent.sent, With: with, Whole: whole})
		g.pump(ctx, g.pid)
	}
}

// taken sends a guest the next lines.
func (h *hall) taken(ctx actor.Context, g *guest, n uint64) {
	switch {
	case g == nil:
	case g.taken(n):
		h.complete(ctx, g) // its number shows them the missed lines
	default:
		g.pump(ctx, g.pid)
	}
}

// key returns a PID's key in maps.
func key(pid *actor.PID) string { return pid.GetAddress() + "/" + pid.GetId() }

// answer answers the Sender, with the grain as the answer's sender.
func answer(ctx actor.Context, msg any) {
	if ctx.Sender() != nil {
		ctx.Request(ctx.Sender(), msg)
	}
}
