package room

import "slices"

const maxRooms = 256 // each with a history

// Rooms is all rooms of one place, and their members. A member is in one room. A nickname is unique
// across all rooms.
type Rooms struct {
	directory *Directory
	rooms     Names[*Room] // rooms with members, and the lobby
}

// NewRooms returns a place with an empty lobby.
func NewRooms() *Rooms {
	r := &Rooms{directory: NewDirectory(), rooms: make(Names[*Room])}
	r.room(Lobby)
	return r
}

// room returns a room, and creates it if necessary.
func (r *Rooms) room(name string) *Room {
	found, ok := r.rooms.Find(name)
	if !ok {
		found = New(name)
		r.rooms.Put(name, found)
	}
	return found
}

// Len returns the number of entries that a list of the rooms reads.
func (r *Rooms) Len() int { return len(r.rooms) }

// Join admits a member. The member gets the room's history, and the others a notice. identity is
// the owner of the member's key or certificate. "": nothing is proved.
func (r *Rooms) Join(nick, identity, room string, conn any) (*Member, []Delivery, error) {
	name, err := CheckName("room", room, MaxRoom)
	if err != nil {
		return nil, nil, err
	}
	m := &Member{Identity: identity, Conn: conn}
	if err := r.directory.Take(m, nick); err != nil {
		return nil, nil, err
	}
	return m, r.room(name).Enter(m), nil
}

// exit removes m from its room. An empty room is removed with its history, so that rooms cannot
// accumulate.
func (r *Rooms) exit(m *Member, format string, args ...any) []Delivery {
	out := m.Room.Exit(m, format, args...)
	if m.Room.Len() == 0 && m.Room.Name != Lobby {
		r.rooms.Remove(m.Room.Name)
	}
	return out
}

// Leave removes a member and announces why to the room.
func (r *Rooms) Leave(m *Member, why string) []Delivery {
	if !r.directory.Give(m) {
		return nil
	}
	return r.exit(m, "%s left%s", m.Shown(), why)
}

// Receive handles a line from m.
func (r *Rooms) Receive(m *Member, l Line) []Delivery {
	switch l.Type {
	case "say":
		return m.Room.Say(m, l.Text, m.Room.history != nil || len(r.rooms) <= maxRooms)
	case "private":
		return r.private(m, l.To, l.Text)
	case "nick":
		return r.rename(m, l.Text)
	case "room":
		return r.move(m, l.Text)
	case "who":
		return m.Room.Who(m)
	case "rooms":
		return []Delivery{m.Notice("rooms: %s", List(r.names()))}
	}
	return []Delivery{m.Notice("unknown request %q", l.Type)}
}

func (r *Rooms) private(m *Member, nick, text string) []Delivery {
	to, ok := r.directory.Find(nick)
	if !ok {
		return []Delivery{m.Notice("nobody here is called %s", nick)}
	}
	return []Delivery{{to, Line{Type: "private", From: m.Nick, Identity: m.Identity, To: to.Nick, Text: text}}}
}

func (r *Rooms) rename(m *Member, nick string) []Delivery {
	old := m.Nick
	if err := r.directory.Take(m, nick); err != nil {
		return []Delivery{m.Notice("%v", err)}
	}
	return m.Room.Renamed(m, old)
}

func (r *Rooms) move(m *Member, name string) []Delivery {
	name, err := CheckName("room", name, MaxRoom)
	if err != nil {
		return []Delivery{m.Notice("%v", err)}
	}
	to := r.room(name)
	if to == m.Room {
		return []Delivery{m.Notice("you are in %s already", to.Name)}
	}
	out := r.exit(m, "%s went to %s", m.Shown(), to.Name)
	return append(out, to.Enter(m)...)
}

// names lists the rooms.
func (r *Rooms) names() []string {
	var names []string
	for _, room := range r.rooms {
		names = append(names, room.Name)
	}
	slices.Sort(names)
	return slices.Compact(names) // a room is stored under two likenesses
}
