// Package room contains the rules of the chat: lines and their encoding, names, the members and the
// history of a room, and the commands.
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
