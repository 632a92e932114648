package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The chat's own protocol. A client introduces itself in the private data of its connection request; afterwards each message of
// the connection is one line, a JSON object.

// version opens every introduction, so that strangers get a readable refusal.
const version = "chat/1"

const (
	maxNick = 24   // bytes
	maxRoom = 32   // bytes
	maxText = 4096 // bytes of one line
	lobby   = "lobby"
)

// line is what travels: to the server say, private, nick, room, who, rooms; to clients say, private, notice, you.
type line struct {
	Type string `json:"t"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Room string `json:"room,omitempty"`
	Text string `json:"text,omitempty"`
	Past bool   `json:"past,omitempty"` // from the room's history
}

func (l line) encode() []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic("BUG: a line that cannot be encoded: " + err.Error())
	}
	return b
}

// decode parses what a peer sent. The peer is not trusted: control characters go, lengths are checked.
func decode(b []byte) (line, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return line{}, fmt.Errorf("not a chat line: %w", err)
	}
	l.Type, l.From, l.To, l.Room, l.Text = clean(l.Type), clean(l.From), clean(l.To), clean(l.Room), clean(l.Text)
	if len(l.From) > maxNick || len(l.To) > maxNick || len(l.Room) > maxRoom {
		return line{}, errors.New("a name is too long")
	}
	if len(l.Text) > maxText {
		l.Text = truncate(l.Text, maxText)
	}
	return l, nil
}

// hello is the private data of a connection request.
type hello struct{ nick, room string }

func (h hello) encode() []byte { return []byte(version + "\x00" + h.nick + "\x00" + h.room) }

func decodeHello(b []byte) (hello, error) {
	parts := strings.Split(string(b), "\x00")
	if len(parts) != 3 || parts[0] != version {
		return hello{}, fmt.Errorf("this is a %s server", version)
	}
	h := hello{nick: parts[1], room: parts[2]}
	if err := checkName("nickname", h.nick, maxNick); err != nil {
		return hello{}, err
	}
	return h, checkName("room", h.room, maxRoom)
}

// checkName says why s cannot be a nickname or a room.
func checkName(what, s string, limit int) error {
	switch {
	case s == "":
		return fmt.Errorf("a %s is needed", what)
	case len(s) > limit:
		return fmt.Errorf("the %s %q is longer than %d bytes", what, s, limit)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '/' || r == ':' }) || clean(s) != s:
		return fmt.Errorf("the %s %q may not have spaces, colons, slashes or control characters", what, s)
	}
	return nil
}

// clean removes what could move somebody's cursor, ring the bell, or turn the writing around: control and format characters and
// bytes that are not UTF-8. The joiner stays, families of emoji are made with it.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == joiner:
			return r
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return -1
		}
		return r
	}, s)
}

const joiner = '\u200d'

// truncate cuts s to at most n bytes, between runes.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
