package room

import (
	"fmt"
	"slices"
	"strings"
)

// HistoryLen is how many lines a room remembers.
const HistoryLen = 50

// crowded is the number of members from which a room no longer announces joins and leaves.
const crowded = 100

// Member is a user in a room.
type Member struct {
	Nick string
	// Identity is the owner of the member's key or certificate. "": nothing is proved.
	Identity string
	Room     *Room
	Conn     any // the connection, for the sender's use
}

// Shown returns m's nickname and identity as [Shown] does.
func (m *Member) Shown() string { return Shown(m.Nick, m.Identity) }

// Delivery is one line for one member.
type Delivery struct {
	To   *Member
	Line Line
}

// Room has the members of a room, and its history, oldest first.
type Room struct {
	Name    string
	members map[*Member]struct{}
	history []Line
}

// New returns an empty room.
func New(name string) *Room {
	return &Room{Name: name, members: make(map[*Member]struct{})}
}

// Len returns the number of members in the room.
func (r *Room) Len() int { return len(r.members) }

// Enter adds m to the room. m gets a line with its name and room, and the room's history. The
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

// Return adds m to the room again after the connection was lost or the room was made anew. m gets
// the line with its name and room. The others get the notice, unless that is empty: if the room was
// made anew, they have not seen m go.
func (r *Room) Return(m *Member, notice string) []Delivery {
	m.Room = r
	r.members[m] = struct{}{}
	out := []Delivery{m.you()}
	if notice == "" {
		return out
	}
	return append(out, r.announce(m, "%s %s", m.Shown(), notice)...)
}

// Exit removes m from the room, and sends the others a notice with the reason.
func (r *Room) Exit(m *Member, format string, args ...any) []Delivery {
	delete(r.members, m)
	return r.announce(m, format, args...)
}

// Say delivers m's text to the others. With remember, members who enter later get it, too.
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

// Renamed announces that m, formerly old, has a new nickname.
func (r *Room) Renamed(m *Member, old string) []Delivery {
	out := []Delivery{m.you(), m.Notice("%s is now %s", old, m.Nick)}
	return append(out, r.announce(m, "%s is now %s", Shown(old, m.Identity), m.Shown())...)
}

// Who answers m with the members of the room.
func (r *Room) Who(m *Member) []Delivery {
	var nicks []string
	for m := range r.members {
		nicks = append(nicks, m.Shown())
	}
	slices.Sort(nicks)
	return []Delivery{m.Notice("in %s: %s", r.Name, List(nicks))}
}

// Crowded reports whether the room has too many members to announce joins and leaves.
func (r *Room) Crowded() bool { return len(r.members) >= crowded }

// announce sends the room a notice about m, unless it is crowded.
func (r *Room) announce(m *Member, format string, args ...any) []Delivery {
	if r.Crowded() {
		return nil
	}
	return r.broadcast(m, Notice(r.Name, format, args...))
}

// broadcast delivers a line to all members of the room but one.
func (r *Room) broadcast(but *Member, l Line) []Delivery {
	var out []Delivery
	for m := range r.members {
		if m != but {
			out = append(out, Delivery{m, l})
		}
	}
	return out
}

// you returns the line that reports its name and room to m's client.
func (m *Member) you() Delivery {
	return Delivery{m, Line{Type: "you", From: m.Nick, Room: m.Room.Name}}
}

// Notice returns a line of m's room to m alone.
func (m *Member) Notice(format string, args ...any) Delivery {
	return Delivery{m, Notice(m.Room.Name, format, args...)}
}

// List joins names into one text, as many as fit into a line.
func List(names []string) string {
	const most = 100
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s", strings.Join(names[:most], ", "), Plural(len(names)-most, "other"))
}

// Plural returns "1 line", "2 lines".
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
