// Package room is what the chats of this repository share: lines and their bytes, what people may
// be called, who is in a room and what was said there, and what can be typed. One machine's chat
// (examples/chat) has all rooms in one actor. The chat across machines (remoting/pacluster/chat)
// has each room in a virtual actor of its own.
//
// It does no input or output. What changes a room returns the lines that are to be sent.
//
// # Ownership
//
// Nothing here is safe for concurrent use: one actor owns a room, its members, and a [Directory].
//
// # Errors
//
// Bytes and names come from strangers. [Decode] removes what could move the reader's cursor, and
// checks lengths; [CheckName] refuses what cannot be seen. What a member asks in vain is answered
// with a notice; only [Rooms.Join] returns an error.
//
// # Limitations
//
// A room remembers 50 lines, and keeps no record of what was said before.
package room
