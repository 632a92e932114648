// Package room contains what the chats of this repository share: lines and their encoding, the
// rules for names, the members and the history of a room, and the commands. One machine's chat
// (examples/chat) has all rooms in one actor. The chat across machines (remoting/pacluster/chat)
// has each room in its own virtual actor.
//
// It does no input or output. Methods that change a room return the lines to be sent.
//
// # Ownership
//
// Nothing here is safe for concurrent use: one actor owns a room, its members, and a [Directory].
//
// # Errors
//
// Bytes and names come from untrusted peers. [Decode] removes characters that could move the
// reader's cursor, and checks lengths; [CheckName] refuses invisible characters. A member's invalid
// request is answered with a notice; only [Rooms.Join] returns an error.
//
// # Limitations
//
// A room remembers 50 lines, and keeps no record of older ones.
package room
