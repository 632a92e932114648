package main

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// The one directory of the cluster is a grain.
const (
	directoryKind = "directory"
	everybody     = "everybody"
)

// directory has everybody's nickname and room. So a name is unique in all rooms, /msg finds its
// owner, and /rooms lists the rooms of all members. Its only source are the reports of people: when
// it is made anew on another member, they report again.
type directory struct {
	names  *room.Directory
	people map[string]*person
	rooms  room.Names[*place]
}

// person is a participant of the chat.
type person struct {
	backlog
	pid    *actor.PID
	member *room.Member
	in     *place // nil: not let in yet
}

// place is a room with people.
type place struct {
	name   string
	people int
}

func newDirectory() actor.Actor {
	return &directory{names: room.NewDirectory(), people: make(map[string]*person), rooms: make(room.Names[*place])}
}

// Receive handles people's requests. The Sender is the person.
func (d *directory) Receive(ctx actor.Context) {
	pid := ctx.Sender()
	switch m := ctx.Message().(type) {
	case *actor.Terminated:
		d.forget(ctx, m.Who)
	case *leave:
		d.forget(ctx, pid)
		answer(ctx, &bye{})
	case *take:
		d.take(ctx, m)
	case *private:
		if p := d.people[key(pid)]; p != nil {
			d.private(ctx, p, m)
			answer(ctx, &took{})
		}
	case *whichRooms:
		if p := d.people[key(pid)]; p != nil {
			p.deliver(ctx, room.Notice("", "rooms: %s", room.List(d.list())))
			answer(ctx, &took{})
		}
	case *taken:
		if p := d.people[key(pid)]; p != nil {
			if p.taken(m.N) { // its number shows them the missed lines
				p.add(&heard{})
			}
			p.pump(ctx, p.pid)
		}
	}
}

// take grants a name, and records the person's room.
func (d *directory) take(ctx actor.Context, m *take) {
	pid := ctx.Sender()
	if pid == nil {
		return
	}
	where, err := room.CheckName("room", m.Room, room.MaxRoom)
	if err != nil {
		answer(ctx, &refused{err.Error()})
		return
	}
	p := d.people[key(pid)]
	isNew := p == nil
	if isNew {
		p = &person{pid: pid, member: &room.Member{}}
		p.member.Conn = p
	}
	if err := d.names.Take(p.member, m.Nick); err != nil {
		answer(ctx, &refused{err.Error()})
		return
	}
	if isNew {
		d.people[key(pid)] = p
		ctx.Watch(pid)
	}
	in, ok := d.rooms.Find(where)
	if !ok {
		in = &place{name: where}
		d.rooms.Put(where, in)
	}
	in.people++ // before exit, because it may be the room that they are in
	d.exit(p)
	p.in = in
	answer(ctx, &granted{Nick: p.member.Nick, Room: in.name})
}

func (d *directory) private(ctx actor.Context, from *person, m *private) {
	to, ok := d.names.Find(m.To)
	if !ok {
		from.deliver(ctx, room.Notice("", "nobody here is called %s", room.Clean(m.To)))
		return
	}
	l := room.Line{Type: "private", From: from.member.Nick, To: to.Nick, Text: m.Text}
	to.Conn.(*person).deliver(ctx, l)
}

// deliver sends a line as soon as the person's window has room.
func (p *person) deliver(ctx actor.Context, l room.Line) {
	p.add(&heard{Line: l})
	p.pump(ctx, p.pid)
}

// forget removes a person after their leaving.
func (d *directory) forget(ctx actor.Context, pid *actor.PID) {
	p := d.people[key(pid)]
	if p == nil {
		return
	}
	delete(d.people, key(pid))
	ctx.Unwatch(pid)
	d.names.Give(p.member)
	d.exit(p)
}

// exit records that a person left the room.
func (d *directory) exit(p *person) {
	if p.in == nil {
		return
	}
	if p.in.people--; p.in.people == 0 {
		d.rooms.Remove(p.in.name)
	}
	p.in = nil
}

// list names the rooms with people, and the lobby.
func (d *directory) list() []string {
	names := []string{room.Lobby}
	for _, in := range d.rooms {
		names = append(names, in.name)
	}
	slices.Sort(names)
	return slices.Compact(names) // a room is stored under two likenesses
}
