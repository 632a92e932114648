package room

import (
	"fmt"
	"os"
)

// DefaultNick is the nickname of who has not chosen one: the user's name, if it can be one, and a
// number.
func DefaultNick() string {
	name := os.Getenv("USER")
	if _, err := CheckName("nickname", name, MaxNick-8); err != nil {
		name = "guest"
	}
	return fmt.Sprintf("%s%d", name, os.Getpid()%10000)
}

// CheckFlags judges what the flags --nick and --room say.
func CheckFlags(nick, room string) error {
	if _, err := CheckName("nickname", nick, MaxNick); err != nil {
		return fmt.Errorf("--nick: %w", err)
	}
	if _, err := CheckName("room", room, MaxRoom); err != nil {
		return fmt.Errorf("--room: %w", err)
	}
	return nil
}
