package main

import "github.com/rdmactor/rdmactor/lab/chat/room"

// The chat's protocol. The private data of a connection request is only the version: RoCE has room
// for 44 bytes. Each message of the connection is one line, a JSON object. The client's first line
// is its hello. The server answers with a line of type you, or with one of type refused and closes
// the connection.

// version is in every connection request, so that programs of other versions get a readable
// refusal.
const version = "chat/2"

// hello is the nickname and the room that a client asks for.
type hello struct{ nick, room string }

func (h hello) encode() []byte {
	return room.Line{Type: "hello", From: h.nick, Room: h.room}.Encode()
}
