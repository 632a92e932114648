package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// The chat's own protocol. The private data of a connection request is the version and nothing
// else: RoCE has room for 44 bytes. Each message of the connection is one line, a JSON object. The
// client's first line is its hello. The server answers with a line of type you, or with one of
// type refused and closes the connection.

// version is in every connection request, so that programs of other versions get a readable
// refusal.
const version = "chat/2"

const (
	maxNick = 24   // bytes
	maxRoom = 32   // bytes
	maxText = 4096 // bytes of one line
	lobby   = "lobby"
)

// line is what both sides send: to the server hello, say, private, nick, room, who, rooms; to
// clients you (who they are, and where), refused, say, private, notice.
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

// decode parses what a peer sent. The peer is not trusted: control characters go, lengths are
// checked.
func decode(b []byte) (line, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return line{}, fmt.Errorf("not a chat line: %w", err)
	}
	l.Type, l.From, l.To, l.Room, l.Text = clean(l.Type), clean(l.From), clean(l.To), clean(l.Room), clean(l.Text)
	if len(l.From) > maxNick || len(l.To) > maxNick || len(l.Room) > maxRoom || len(l.Type) > maxNick {
		return line{}, errors.New("a name is too long")
	}
	if len(l.Text) > maxText {
		l.Text = truncate(l.Text, maxText)
	}
	return l, nil
}

// hello is who somebody wants to be, and where.
type hello struct{ nick, room string }

func (h hello) encode() []byte { return line{Type: "hello", From: h.nick, Room: h.room}.encode() }

// checkName gives s as everybody will see it, or says why it cannot be a nickname or a room. What
// cannot be seen is refused, and so is whatever else is no letter, digit or ASCII character: names
// are PRECIS usernames (RFC 8265).
func checkName(what, s string, limit int) (string, error) {
	if s == "" {
		return "", fmt.Errorf("a %s is needed", what)
	}
	if len(s) > 4*limit { // no other form of as long a name is short enough
		return "", fmt.Errorf("the %s is longer than %d bytes", what, limit)
	}
	name, err := precis.UsernameCasePreserved.String(s)
	switch {
	case err != nil || strings.ContainsAny(name, "/:") || strayMark(name):
		return "", fmt.Errorf("the %s %+q may not have spaces, colons, slashes, emoji, "+
			"or characters that nobody sees", what, s)
	case len(name) > limit:
		return "", fmt.Errorf("the %s %q is longer than %d bytes", what, name, limit)
	}
	return name, nil
}

// clean removes what could move the reader's cursor, ring the bell, or change the direction of
// writing: control and format characters and bytes that are not UTF-8. The zero-width joiner
// stays, because it joins emoji.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == joiner:
			return r
		case r == utf8.RuneError, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
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
