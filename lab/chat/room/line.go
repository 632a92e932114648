package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// Limits of input.
const (
	MaxNick = 24   // bytes
	MaxRoom = 32   // bytes
	MaxText = 4096 // bytes of one line
	// maxIdentity is how many bytes of an identity are shown.
	maxIdentity = 64
)

// Lobby is the room that is always there.
const Lobby = "lobby"

// Line is one line of a chat, in either direction. Lines to rooms have the types hello, say,
// private, nick, room, who and rooms; lines to members you (their name and room), refused, say,
// private and notice.
type Line struct {
	Type string `json:"t"`
	From string `json:"from,omitempty"`
	// Identity is the owner of From's key or certificate. The room sets it.
	Identity string `json:"identity,omitempty"`
	To       string `json:"to,omitempty"`
	Room     string `json:"room,omitempty"`
	Text     string `json:"text,omitempty"`
	Past     bool   `json:"past,omitempty"` // from the room's history
}

// Encode returns the line as a JSON object.
func (l Line) Encode() []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic("BUG: a line that cannot be encoded: " + err.Error())
	}
	return b
}

// Decode parses a line from an untrusted peer. It removes control characters and checks lengths.
func Decode(b []byte) (Line, error) {
	var l Line
	if err := json.Unmarshal(b, &l); err != nil {
		return Line{}, fmt.Errorf("not a chat line: %w", err)
	}
	return l.Checked()
}

// Checked checks and cleans the line as Decode does. It is for lines that another codec has
// decoded.
func (l Line) Checked() (Line, error) {
	l.Type, l.From, l.To, l.Room, l.Text = Clean(l.Type), Clean(l.From), Clean(l.To), Clean(l.Room), Clean(l.Text)
	l.Identity = truncate(l.Identity, maxIdentity)
	if len(l.From) > MaxNick || len(l.To) > MaxNick || len(l.Room) > MaxRoom || len(l.Type) > MaxNick {
		return Line{}, errors.New("a name is too long")
	}
	if len(l.Text) > MaxText {
		l.Text = truncate(l.Text, MaxText)
	}
	return l, nil
}

// Show returns the line as a person reads it, or "" if there is nothing to read.
func (l Line) Show() string {
	past := ""
	if l.Past {
		past = "(earlier) "
	}
	switch l.Type {
	case "say":
		return fmt.Sprintf("%s[%s] %s: %s", past, l.Room, Shown(l.From, l.Identity), l.Text)
	case "private":
		return fmt.Sprintf("(private) %s: %s", Shown(l.From, l.Identity), l.Text)
	case "notice":
		return "* " + l.Text
	}
	return ""
}

// Shown returns nick with the identity that its member's key or certificate proves: "ann ✓" if it
// belongs to ann, and 'bob ("ann")' if it belongs to ann, who calls herself bob. Without an
// identity it returns the nick alone. No nickname can look like the others, because none has a
// space.
func Shown(nick, identity string) string {
	switch identity {
	case "":
		return nick
	case nick:
		return nick + " ✓"
	}
	return fmt.Sprintf("%s (%+q)", nick, truncate(identity, maxIdentity))
}

// Notice returns a line of a room to its members.
func Notice(room, format string, args ...any) Line {
	return Line{Type: "notice", Room: room, Text: fmt.Sprintf(format, args...)}
}

// CheckName returns s as all members will see it, or an error if it cannot be a nickname or a room.
// It refuses invisible characters and all others except letters, digits and ASCII: names are PRECIS
// usernames (RFC 8265).
func CheckName(what, s string, limit int) (string, error) {
	if s == "" {
		return "", fmt.Errorf("a %s is needed", what)
	}
	if len(s) > 4*limit { // no form of so long a name is short enough
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

// Clean removes characters that could move the reader's cursor, ring the bell, or change the
// direction of writing: control and format characters and bytes that are not UTF-8. The zero-width
// joiner stays, because it joins emoji.
func Clean(s string) string {
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
