package room

import (
	"fmt"
	"strings"
)

// HelpText lists what can be typed.
const HelpText = `/help              this text
/nick NAME         change your nickname
/room NAME         go to another room
/who               who is in this room
/rooms             the rooms
/msg NAME TEXT     a private message
/quit              leave (so do Ctrl-C and Ctrl-D)`

// Parse turns typed text into a line for the server, or into a text for the user.
func Parse(text string) (l Line, local string) {
	text = strings.TrimRight(text, " \r\n")
	slash := strings.TrimLeft(text, " \t")
	switch {
	case slash == "":
		return Line{}, ""
	case len(text) > MaxText:
		return Line{Type: "say", Text: truncate(Clean(text), MaxText)}, fmt.Sprintf("that line was cut after %d bytes", MaxText)
	case slash[0] != '/':
		return Line{Type: "say", Text: Clean(text)}, ""
	}
	command, rest, _ := strings.Cut(slash[1:], " ")
	rest = strings.TrimSpace(Clean(rest))
	switch command {
	case "help":
		return Line{}, HelpText
	case "nick", "room":
		if rest == "" {
			return Line{}, "/" + command + " needs a name"
		}
		return Line{Type: command, Text: rest}, ""
	case "who", "rooms":
		return Line{Type: command}, ""
	case "msg":
		to, what, ok := strings.Cut(rest, " ")
		if !ok {
			return Line{}, "/msg NAME TEXT"
		}
		return Line{Type: "private", To: to, Text: what}, ""
	}
	return Line{}, "unknown command /" + Clean(command) + "; /help lists them"
}
