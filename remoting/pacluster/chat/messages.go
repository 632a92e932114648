package main

import (
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/examples/chat/room"
)

// The messages between a person's actor, the rooms and the directory. The author of a message is
// its Sender, so messages contain no PID.

// Messages to a room. The answer to the last three is a took.
type (
	// enter asks to be let in. After the loss of the room it has the lost one's key, how many lines
	// that had sent to all up to the last one received, and the person's name there.
	enter struct {
		Nick string
		Lost string // "": none
		Seen uint64
		Was  string
	}
	// say is a line for the others in the room.
	say struct{ Text string }
	// whoIsHere asks for the names in the room.
	whoIsHere struct{}
	// renamed reports the person's new nickname, which the directory has granted.
	renamed struct{ Nick string }
)

// Messages from a room, or from the directory.
type (
	// heard is a line for a person. N numbers the person's lines since they were let in, so that
	// missing ones are noticed. Sent is how many lines the room has sent to all.
	heard struct {
		N, Sent uint64
		Line    room.Line
		change
		With  []string `json:",omitempty"` // the people in the room
		Whole bool     `json:",omitempty"` // With has all of them
	}
	// change has the names that a line adds to and removes from a room.
	change struct {
		Came string `json:",omitempty"`
		Went string `json:",omitempty"`
	}
	// took reports that the room has handled a request.
	took struct{}
	// bye answers a leave: the person is forgotten there.
	bye struct{}
	// refused contains the reason why a person is not let in, or gets no name.
	refused struct{ Why string }
)

// Messages to a room and to the directory.
type (
	leave struct {
		How string // "left", "went to cellar"
	}
	// taken reports that the lines up to number N were shown.
	taken struct{ N uint64 }
)

// Messages to the directory.
type (
	// take asks for a nickname, and reports in which room the person is or wants to be. The answer
	// is a granted or a refused.
	take struct{ Nick, Room string }
	// private is a line for a person in any room. The answer is a took.
	private struct{ To, Text string }
	// whichRooms asks for the rooms. The answers are a heard and a took.
	whichRooms struct{}
)

// granted is the directory's answer to a take: the names as everybody sees them.
type granted struct{ Nick, Room string }

// messages returns the codecs of the chat's messages between members.
func messages() *codec.Registry {
	return codec.New(
		codec.JSON[*enter]("chat.enter"),
		codec.JSON[*say]("chat.say"),
		codec.JSON[*whoIsHere]("chat.whoIsHere"),
		codec.JSON[*renamed]("chat.renamed"),
		codec.JSON[*heard]("chat.heard"),
		codec.JSON[*took]("chat.took"),
		codec.JSON[*bye]("chat.bye"),
		codec.JSON[*refused]("chat.refused"),
		codec.JSON[*leave]("chat.leave"),
		codec.JSON[*taken]("chat.taken"),
		codec.JSON[*take]("chat.take"),
		codec.JSON[*private]("chat.private"),
		codec.JSON[*whichRooms]("chat.whichRooms"),
		codec.JSON[*granted]("chat.granted"),
	)
}
