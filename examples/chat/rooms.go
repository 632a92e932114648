package main

import (
	"fmt"
	"slices"
	"strings"
)

// rooms is who is where, and what was said. It does no input or output: each call returns the lines
// to send.
type rooms struct {
	members names[*member]
	rooms   names[*room] // those that somebody is in, and the lobby
}

// member is somebody in a room.
type member struct {
	nick string
	room *room
	conn any // the connection, for whoever sends
}

// room is who is in it, and what was said, oldest first.
type room struct {
	name    string
	members map[*member]struct{}
	history []line
}

// delivery is one line for one member.
type delivery struct {
	to   *member
	line line
}

const (
	historyLen = 50
	maxRooms   = 256 // with a history of their own
	crowded    = 100 // from this many on, a room is not notified who comes and goes
)

func newRooms() *rooms {
	r := &rooms{members: make(names[*member]), rooms: make(names[*room])}
	r.room(lobby)
	return r
}

// room finds a room, or makes it.
func (r *rooms) room(name string) *room {
	found, ok := r.rooms.find(name)
	if !ok {
		found = &room{name: name, members: make(map[*member]struct{})}
		r.rooms.put(name, found)
	}
	return found
}

// take gives m a nickname, unless somebody else has it, or one that looks like it.
func (r *rooms) take(m *member, nick string) error {
	nick, err := checkName("nickname", nick, maxNick)
	if err != nil {
		return err
	}
	for _, l := range likenesses(nick) {
		if other := r.members[l]; other != nil && other != m {
			if nick != other.nick {
				return fmt.Errorf("the nickname %q looks like %q, who is here", nick, other.nick)
			}
			return fmt.Errorf("the nickname %q is taken", nick)
		}
	}
	r.members.remove(m.nick)
	m.nick = nick
	r.members.put(nick, m)
	return nil
}

// join lets somebody in. They get the room's history, and the others a notice.
func (r *rooms) join(h hello, conn any) (*member, []delivery, error) {
	name, err := checkName("room", h.room, maxRoom)
	if err != nil {
		return nil, nil, err
	}
	m := &member{conn: conn}
	if err := r.take(m, h.nick); err != nil {
		return nil, nil, err
	}
	return m, r.enter(m, r.room(name)), nil
}

// enter brings m into a room. It gets a line that says where it is, and the room's history.
func (r *rooms) enter(m *member, to *room) []delivery {
	out := to.announce(m, "%s joined", m.nick)
	m.room = to
	others := plural(len(to.members), "other")
	to.members[m] = struct{}{}
	out = append(out, m.you(), m.notice("you are %s in %s with %s; /help has more", m.nick, to.name, others))
	for _, l := range to.history {
		l.Past = true
		out = append(out, delivery{m, l})
	}
	return out
}

// exit takes m out of its room, and sends the room a notice that says why. An empty room is
// removed with its history, so that rooms cannot pile up.
func (r *rooms) exit(m *member, format string, args ...any) []delivery {
	delete(m.room.members, m)
	if len(m.room.members) == 0 && m.room.name != lobby {
		r.rooms.remove(m.room.name)
	}
	return m.room.announce(m, format, args...)
}

// leave takes somebody out and notifies the room why.
func (r *rooms) leave(m *member, why string) []delivery {
	if found, _ := r.members.find(m.nick); found != m {
		return nil
	}
	r.members.remove(m.nick)
	return r.exit(m, "%s left%s", m.nick, why)
}

// receive handles what m sent.
func (r *rooms) receive(m *member, l line) []delivery {
	switch l.Type {
	case "say":
		return r.say(m, l.Text)
	case "private":
		return r.private(m, l.To, l.Text)
	case "nick":
		return r.rename(m, l.Text)
	case "room":
		return r.move(m, l.Text)
	case "who":
		return []delivery{m.notice("in %s: %s", m.room.name, list(m.room.nicks()))}
	case "rooms":
		return []delivery{m.notice("rooms: %s", list(r.names()))}
	}
	return []delivery{m.notice("unknown request %q", l.Type)}
}

func (r *rooms) say(m *member, text string) []delivery {
	if text == "" {
		return nil
	}
	l := line{Type: "say", From: m.nick, Room: m.room.name, Text: text}
	if h := m.room.history; h != nil || len(r.rooms) <= maxRooms {
		if len(h) == historyLen {
			h = slices.Delete(h, 0, 1)
		}
		m.room.history = append(h, l)
	}
	return m.room.broadcast(m, l)
}

func (r *rooms) private(m *member, nick, text string) []delivery {
	to, ok := r.members.find(nick)
	if !ok {
		return []delivery{m.notice("nobody here is called %s", nick)}
	}
	return []delivery{{to, line{Type: "private", From: m.nick, To: to.nick, Text: text}}}
}

func (r *rooms) rename(m *member, nick string) []delivery {
	old := m.nick
	if err := r.take(m, nick); err != nil {
		return []delivery{m.notice("%v", err)}
	}
	out := []delivery{m.you(), m.notice("%s is now %s", old, m.nick)}
	return append(out, m.room.announce(m, "%s is now %s", old, m.nick)...)
}

func (r *rooms) move(m *member, name string) []delivery {
	name, err := checkName("room", name, maxRoom)
	if err != nil {
		return []delivery{m.notice("%v", err)}
	}
	to := r.room(name)
	if to == m.room {
		return []delivery{m.notice("you are in %s already", to.name)}
	}
	out := r.exit(m, "%s went to %s", m.nick, to.name)
	return append(out, r.enter(m, to)...)
}

// announce sends a room a notice about m, unless there are so many that nobody could read it.
func (r *room) announce(m *member, format string, args ...any) []delivery {
	if len(r.members) >= crowded {
		return nil
	}
	return r.broadcast(m, notice(r.name, format, args...))
}

// broadcast delivers a line to everybody in a room but one.
func (r *room) broadcast(but *member, l line) []delivery {
	var out []delivery
	for m := range r.members {
		if m != but {
			out = append(out, delivery{m, l})
		}
	}
	return out
}

// nicks lists a room's nicknames.
func (r *room) nicks() []string {
	var nicks []string
	for m := range r.members {
		nicks = append(nicks, m.nick)
	}
	slices.Sort(nicks)
	return nicks
}

// names lists the rooms.
func (r *rooms) names() []string {
	var names []string
	for _, room := range r.rooms {
		names = append(names, room.name)
	}
	slices.Sort(names)
	return names
}

// you is the line from which m's client learns who and where m is.
func (m *member) you() delivery {
	return delivery{m, line{Type: "you", From: m.nick, Room: m.room.name}}
}

func (m *member) notice(format string, args ...any) delivery {
	return delivery{m, notice(m.room.name, format, args...)}
}

func notice(room, format string, args ...any) line {
	return line{Type: "notice", Room: room, Text: fmt.Sprintf(format, args...)}
}

// list puts names into one text, as many as a line has room for.
func list(names []string) string {
	const most = 100
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s", strings.Join(names[:most], ", "), plural(len(names)-most, "other"))
}

// plural is "1 line", "2 lines".
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
