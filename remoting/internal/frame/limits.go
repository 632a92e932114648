package frame

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// How long the parts of a record may be, in bytes. A body is bounded by its frame.
const (
	MaxName    = 1 << 10  // a node's name, a member's id, an address, an actor's id
	MaxType    = 512      // the name of a message's type, or of a kind to spawn
	MaxReason  = 512      // a reason for people; a longer one is cut when it is written
	MaxPairs   = 64       // pairs of a header
	MaxHeader  = 16 << 10 // their keys and values
	MaxMessage = 1 << 30  // the highest limit in a Hello
)

// The causes of errors.
var (
	// ErrTruncated: the frame ends in the middle of a record.
	ErrTruncated = errors.New("the frame ends before it does")
	// ErrTooLong: a part is longer than its limit.
	ErrTooLong = errors.New("longer than allowed")
	// ErrMalformed: no Writer writes this.
	ErrMalformed = errors.New("malformed")
)

// Error reports which part of which record is wrong. errors.Is: Cause, and EPROTO when reading,
// EINVAL when writing.
type Error struct {
	Kind   Kind   // the record's; 0: it has none
	Part   string // "target", "type", "body"
	Offset int    // where in the frame
	Cause  error  // ErrTruncated, ErrTooLong, ErrMalformed
	Errno  unix.Errno
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v of %v at byte %d of a frame: %v", e.Part, e.Kind, e.Offset, e.Cause)
}

// Unwrap gives the cause and the errno.
func (e *Error) Unwrap() []error { return []error{e.Cause, e.Errno} }
