package room

import (
	"fmt"
	"slices"
	"strings"
)

// HistoryLen is how many lines a room remembers.
const HistoryLen = 50

// crowded is from how many on a room is not notified who comes and goes.
const crowded = 100

// Member is somebody in a room.
type Member struct {
	Nick string
	// Identity is whom the member's key or certificate belongs to. "": nothing is proved.
	Identity string
	Room     *Room
	Conn     any // the connection, for whoever sends
}

// Shown returns m's nickname with what is proved about it, as [Shown] does.
func (m *Member) Shown() string { return Shown(m.Nick, m.Identity) }

// Delivery is one line for one member.
type Delivery struct {
	To   *Member
	Line Line
}

// Room is who is in it, and what was said, oldest first.
type Room struct {
	Name    string
	members map[*Member]struct{}
	history []Line
}

// New returns an empty room.
func New(name string) *Room {
	return &Room{Name: name, members: make(map[*Member]struct{})}
}

// Len is how many are in the room.
func (r *Room) Len() int { return len(r.members) }

// Enter brings m into the room. It gets a line that says where it is, and the room's history. The
// others get a notice.
func (r *Room) Enter(m *Member) []Delivery {
	out := r.announce(m, "%s joined", m.Shown())
	m.Room = r
	others := Plural(len(r.members), "other")
	r.members[m] = struct{}{}
	out = append(out, m.you(), m.Notice("you are %s in %s with %s; /help has more", m.Nick, r.Name, others))
	for _, l := range r.history {
		l.Past = true
		out = append(out, Delivery{m, l})
	}
	return out
}

// Return brings m into the room again, which m has lost, or which was made anew. It gets the line
// that says where it is. The others get the notice, unless that is empty: they have not seen m go
// if the room was made anew.
func (r *Room) Return(m *Member, notice string) []Delivery {
	m.Room = r
	r.members[m] = struct{}{}
	out := []Delivery{m.you()}
	if notice == "" {
		return out
	}
	return append(out, r.announce(m, "%s %s", m.Shown(), notice)...)
}

// Exit takes m out of the room, and sends the others a notice that says why.
func (r *Room) Exit(m *Member, format string, args ...any) []Delivery {
	delete(r.members, m)
	return r.announce(m, format, args...)
}

// Say delivers what m says to the others. With remember, those who enter later get it, too.
func (r *Room) Say(m *Member, text string, remember bool) []Delivery {
	if text == "" {
		return nil
	}
	l := Line{Type: "say", From: m.Nick, Identity: m.Identity, Room: r.Name, Text: text}
	if remember {
		if len(r.history) == HistoryLen {
			r.history = slices.Delete(r.history, 0, 1)
		}
		r.history = append(r.history, l)
	}
	return r.broadcast(m, l)
}

// Renamed reports that m, who has been called old, has a new nickname.
func (r *Room) Renamed(m *Member, old string) []Delivery {
	out := []Delivery{m.you(), m.Notice("%s is now %s", old, m.Nick)}
	return append(out, r.announce(m, "%s is now %s", Shown(old, m.Identity), m.Shown())...)
}

// Who answers m who is in the room.
func (r *Room) Who(m *Member) []Delivery {
	var nicks []string
	for m := range r.members {
		nicks = append(nicks, m.Shown())
	}
	slices.Sort(nicks)
	return []Delivery{m.Notice("in %s: %s", r.Name, List(nicks))}
}

// Crowded reports whether there are so many that nobody could read who comes and goes.
func (r *Room) Crowded() bool { return len(r.members) >= crowded }

// announce sends the room a notice about m, unless it is crowded.
func (r *Room) announce(m *Member, format string, args ...any) []Delivery {
	if r.Crowded() {
		return nil
	}
	return r.broadcast(m, Notice(r.Name, format, args...))
}

// broadcast delivers a line to everybody in the room but one.
func (r *Room) broadcast(but *Member, l Line) []Delivery {
	var out []Delivery
	for m := range r.members {
		if m != but {
			out = append(out, Delivery{m, l})
		}
	}
	return out
}

// you is the line from which m's client learns who and where m is.
func (m *Member) you() Delivery {
	return Delivery{m, Line{Type: "you", From: m.Nick, Room: m.Room.Name}}
}

// Notice is a line of m's room to m alone.
func (m *Member) Notice(format string, args ...any) Delivery {
	return Delivery{m, Notice(m.Room.Name, format, args...)}
}

// List puts names into one text, as many as a line has room for.
func List(names []string) string {
	const most = 100
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s", strings.Join(names[:most], ", "), Plural(len(names)-most, "other"))
}

// Plural is "1 line", "2 lines".
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
