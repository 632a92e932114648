package codec

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The errors that errors.Is finds in an *Error, unless it is the error of a type's codec.
var (
	// ErrNil: nil, or a nil pointer, is no message. A codec may not return one, either.
	ErrNil = errors.New("it is nil")
	// ErrUnregistered: a message to encode is no protobuf message, and its type is not registered.
	ErrUnregistered = errors.New("it has no codec")
	// ErrUnknownType: bytes to decode are of a type that is not registered.
	ErrUnknownType = errors.New("no type has that name")
	// ErrMalformed: bytes do not begin with the name of a type, as Marshal writes it.
	ErrMalformed = errors.New("not a message with the name of its type")
)

// Error reports why a message could not be encoded or decoded. errors.Is and errors.As find Err;
// and EINVAL, or EBADMSG if Decoding.
type Error struct {
	Decoding bool
	Name     string // the type's, "" if it has none
	Type     string // the type of a message to encode, as %T prints it
	Err      error
	Hint     string // a remedy; may be empty
}

func (e *Error) Error() string {
	what := "cannot encode " + e.Type
	if e.Decoding {
		what = fmt.Sprintf("cannot decode %q", e.Name)
	}
	if e.Hint == "" {
		return fmt.Sprintf("%s: %v", what, e.Err)
	}
	return fmt.Sprintf("%s: %v: %s", what, e.Err, e.Hint)
}

// Unwrap returns the cause and the errno.
func (e *Error) Unwrap() []error {
	if e.Decoding {
		return []error{e.Err, unix.EBADMSG}
	}
	return []error{e.Err, unix.EINVAL}
}

// PanicError: the codec of a type has panicked. errors.Is and errors.As find Value, if it is an
// error.
type PanicError struct {
	Value any
	Stack []byte // of the panic
}

func (e *PanicError) Error() string { return fmt.Sprintf("its codec has panicked: %v", e.Value) }

// Unwrap returns Value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
