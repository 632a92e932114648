package room

import (
	"fmt"
	"os"
)

// DefaultNick returns the nickname of a user who has not chosen one: the user's name, if it is
// valid, and a number.
func DefaultNick() string {
	name := os.Getenv("USER")
	if _, err := CheckName("nickname", name, MaxNick-8); err != nil {
		name = "guest"
	}
	return fmt.Sprintf("%s%d", name, os.Getpid()%10000)
}

// CheckFlags checks the values of the flags --nick and --room.
func CheckFlags(nick, room string) error {
	if _, err := CheckName("nickname", nick, MaxNick); err != nil {
		return fmt.Errorf("--nick: %w", err)
	}
	if _, err := CheckName("room", room, MaxRoom); err != nil {
		return fmt.Errorf("--room: %w", err)
	}
	return nil
}
