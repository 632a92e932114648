package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// rooms is who is where, and what was said. It does no input or output: each call returns the lines to send.
type rooms struct {
	members map[string]*member // by nickname; nil: on the way in
	history map[string][]line  // by room, oldest first
}

// member is somebody in a room.
type member struct {
	nick, room string
	conn       any // the connection, for whoever sends
}

// delivery is one line for one member.
type delivery struct {
	to   *member
	line line
}

const (
	historyLen = 50
	maxRooms   = 256 // with a history of their own
	crowded    = 100 // from this many on, a room is not told who comes and goes
)

func newRooms() *rooms {
	return &rooms{members: make(map[string]*member), history: make(map[string][]line)}
}

// reserve keeps a nickname for somebody on the way in, until join or release.
func (r *rooms) reserve(nick string) error {
	if _, taken := r.members[nick]; taken {
		return fmt.Errorf("the nickname %q is taken", nick)
	}
	r.members[nick] = nil
	return nil
}

// release gives a nickname up that was only reserved.
func (r *rooms) release(nick string) { delete(r.members, nick) }

// join brings somebody in whose nickname is reserved: the past of the room for them, a notice for the others.
func (r *rooms) join(h hello, conn any) (*member, []delivery) {
	m := &member{nick: h.nick, room: h.room, conn: conn}
	out := r.announce(m.room, m, "%s joined", m.nick)
	r.members[m.nick] = m
	return m, append(out, r.welcome(m)...)
}

// welcome is what somebody who comes into a room is told.
func (r *rooms) welcome(m *member) []delivery {
	out := []delivery{{m, notice(m.room, "you are %s in %s with %s; /help tells more", m.nick, m.room, plural(r.count(m.room)-1, "other"))}}
	for _, l := range r.history[m.room] {
		l.Past = true
		out = append(out, delivery{m, l})
	}
	return out
}

// leave takes somebody out and tells the room why.
func (r *rooms) leave(m *member, why string) []delivery {
	if r.members[m.nick] != m {
		return nil
	}
	delete(r.members, m.nick)
	r.tidy(m.room)
	return r.announce(m.room, m, "%s left%s", m.nick, why)
}

// tidy forgets an empty room's past, so that rooms cannot pile up.
func (r *rooms) tidy(room string) {
	if room != lobby && r.count(room) == 0 {
		delete(r.history, room)
	}
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
		return []delivery{{m, notice(m.room, "in %s: %s", m.room, list(r.in(m.room)))}}
	case "rooms":
		return []delivery{{m, notice(m.room, "rooms: %s", list(r.names()))}}
	}
	return []delivery{{m, notice(m.room, "unknown request %q", l.Type)}}
}

func (r *rooms) say(m *member, text string) []delivery {
	if text == "" {
		return nil
	}
	l := line{Type: "say", From: m.nick, Room: m.room, Text: text}
	if h := r.history[m.room]; h != nil || len(r.history) < maxRooms {
		if len(h) == historyLen {
			h = slices.Delete(h, 0, 1)
		}
		r.history[m.room] = append(h, l)
	}
	return r.tell(m.room, m, l)
}

func (r *rooms) private(m *member, nick, text string) []delivery {
	to := r.members[nick]
	if to == nil {
		return []delivery{{m, notice(m.room, "nobody here is called %s", nick)}}
	}
	return []delivery{{to, line{Type: "private", From: m.nick, To: nick, Text: text}}}
}

func (r *rooms) rename(m *member, nick string) []delivery {
	if err := checkName("nickname", nick, maxNick); err != nil {
		return []delivery{{m, notice(m.room, "%v", err)}}
	}
	if err := r.reserve(nick); err != nil {
		return []delivery{{m, notice(m.room, "%v", err)}}
	}
	old := m.nick
	delete(r.members, old)
	m.nick = nick
	r.members[nick] = m
	out := []delivery{{m, line{Type: "you", From: nick, Room: m.room}}}
	out = append(out, delivery{m, notice(m.room, "%s is now %s", old, nick)})
	return append(out, r.announce(m.room, m, "%s is now %s", old, nick)...)
}

func (r *rooms) move(m *member, room string) []delivery {
	if err := checkName("room", room, maxRoom); err != nil {
		return []delivery{{m, notice(m.room, "%v", err)}}
	}
	if room == m.room {
		return []delivery{{m, notice(m.room, "you are in %s already", room)}}
	}
	old := m.room
	m.room = room
	r.tidy(old)
	out := r.announce(old, m, "%s went to %s", m.nick, room)
	out = append(out, r.announce(room, m, "%s joined", m.nick)...)
	out = append(out, delivery{m, line{Type: "you", From: m.nick, Room: room}})
	return append(out, r.welcome(m)...)
}

// announce tells a room about m, unless there are so many that nobody could read it.
func (r *rooms) announce(room string, m *member, format string, args ...any) []delivery {
	if r.count(room) >= crowded {
		return nil
	}
	return r.tell(room, m, notice(room, format, args...))
}

// count is how many are in a room.
func (r *rooms) count(room string) (n int) {
	for _, m := range r.members {
		if m != nil && m.room == room {
			n++
		}
	}
	return n
}

// tell makes a line for everybody in a room but one.
func (r *rooms) tell(room string, but *member, l line) []delivery {
	var out []delivery
	for _, m := range r.members {
		if m != nil && m.room == room && m != but {
			out = append(out, delivery{m, l})
		}
	}
	return out
}

// in lists a room's nicknames.
func (r *rooms) in(room string) []string {
	var nicks []string
	for _, m := range r.members {
		if m != nil && m.room == room {
			nicks = append(nicks, m.nick)
		}
	}
	slices.Sort(nicks)
	return nicks
}

// names lists the rooms that somebody is in, and the lobby.
func (r *rooms) names() []string {
	set := map[string]bool{lobby: true}
	for _, m := range r.members {
		if m != nil {
			set[m.room] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// list is names in one line, not more than a line holds.
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

func notice(room, format string, args ...any) line {
	return line{Type: "notice", Room: room, Text: fmt.Sprintf(format, args...)}
}
