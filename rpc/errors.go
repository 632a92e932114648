package rpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Code is an error's number on the wire. Those below FirstCode are this package's, the others
// belong to services: RegisterCode.
type Code uint16

// FirstCode is the first code that a service may register.
const FirstCode Code = 256

// The codes of this package, and the errors that errors.Is finds for them.
const (
	CodeUnknown       Code = iota + 1 // an error of the handler without a code
	CodeCanceled                      // context.Canceled
	CodeDeadline                      // ErrDeadline
	CodeInternal                      // ErrInternal
	CodeUnknownMethod                 // ErrUnknownMethod
	CodeBadMessage                    // ErrBadMessage
	CodeTooLarge                      // ErrTooLarge
	CodeOverloaded                    // ErrOverloaded
	CodeDraining                      // ErrDraining
	CodeUnavailable                   // ErrUnavailable
	CodeClosed                        // ErrClosed
	CodeForeign                       // ErrForeignPeer
	CodeVersion                       // ErrVersion
)

var codeNames = [...]string{
	0: "OK", CodeUnknown: "UNKNOWN", CodeCanceled: "CANCELED", CodeDeadline: "DEADLINE_EXCEEDED", CodeInternal: "INTERNAL",
	CodeUnknownMethod: "UNKNOWN_METHOD", CodeBadMessage: "BAD_MESSAGE", CodeTooLarge: "TOO_LARGE", CodeOverloaded: "OVERLOADED",
	CodeDraining: "DRAINING", CodeUnavailable: "UNAVAILABLE", CodeClosed: "CLOSED", CodeForeign: "FOREIGN_PEER", CodeVersion: "VERSION",
}

// String returns the code's name as spans and metrics have it, or its number.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return strconv.Itoa(int(c))
}

// The errors that errors.Is finds in the errors of calls.
var (
	// ErrDeadline: the deadline has passed, here or at the server.
	ErrDeadline = context.DeadlineExceeded
	// ErrInternal: the handler, or an interceptor at the server, has panicked. Or the handler, or
	// an interceptor on either side, has returned neither an error nor an answer.
	ErrInternal = addBuiltin(CodeInternal, "internal error", nil)
	// ErrUnknownMethod: the server has no such method, or it is a stream here and a call there.
	ErrUnknownMethod = addBuiltin(CodeUnknownMethod, "unknown method", nil)
	// ErrBadMessage: a request or a reply could not be decoded, or encoded.
	ErrBadMessage = addBuiltin(CodeBadMessage, "malformed message", nil)
	// ErrTooLarge: the message is larger than the receiver's limit (MaxMessage).
	ErrTooLarge = addBuiltin(CodeTooLarge, "message too large", nil)
	// ErrOverloaded: a limit of calls, streams or memory is reached, here or at the server. Nothing
	// was executed.
	ErrOverloaded = addBuiltin(CodeOverloaded, "too many calls in flight", nil)
	// ErrDraining: the server is about to end and takes no further calls. Nothing was executed.
	ErrDraining = addBuiltin(CodeDraining, "the server is draining", nil)
	// ErrUnavailable: there is no connection, or it ended before the answer came. Error.Fate
	// reports what that means for the call.
	ErrUnavailable = addBuiltin(CodeUnavailable, "unavailable", nil)
	// ErrClosed: the Client or the Server was closed.
	ErrClosed = addBuiltin(CodeClosed, "closed", nil)
	// ErrForeignPeer: the peer at the address does not speak this protocol.
	ErrForeignPeer = addBuiltin(CodeForeign, "the peer does not speak this protocol", nil)
	// ErrVersion: the peer speaks another version of this protocol.
	ErrVersion = addBuiltin(CodeVersion, "the peer speaks another version of the protocol", nil)
)

// sentinel is the error that represents a code as the target of errors.Is.
type sentinel struct {
	code Code
	text string
	std  error // the standard library's error that is used instead; nil: none
}

func (s *sentinel) Error() string { return "rpc: " + s.text }

// errorValue returns the error that errors.Is finds.
func (s *sentinel) errorValue() error {
	if s.std != nil {
		return s.std
	}
	return s
}

var (
	codesMu sync.RWMutex
	codes   = make(map[Code]*sentinel)
	_       = addBuiltin(CodeCanceled, "canceled by the caller", context.Canceled)
	_       = addBuiltin(CodeDeadline, "deadline exceeded", context.DeadlineExceeded)
)

func addBuiltin(code Code, text string, std error) error {
	codes[code] = &sentinel{code, text, std}
	return codes[code].errorValue()
}

// RegisterCode makes an error of a service: a handler returns it, or wraps it, and errors.Is finds
// it in the error that the call returns. Both sides register the same code, in a package that they
// share. It panics if the code is below FirstCode or taken.
func RegisterCode(code Code, text string) error {
	if code < FirstCode {
		panic(fmt.Sprintf("rpc: code %d: a service's codes begin at %d", code, FirstCode))
	}
	codesMu.Lock()
	defer codesMu.Unlock()
	if was := codes[code]; was != nil {
		panic(fmt.Sprintf("rpc: code %d was registered for %q, and again for %q", code, was.text, text))
	}
	s := &sentinel{code: code, text: text}
	codes[code] = s
	return s
}

// sentinelOf returns the error that was registered for a code, or nil.
func sentinelOf(code Code) *sentinel {
	if code < FirstCode {
		return codes[code] // complete before main begins
	}
	codesMu.RLock()
	defer codesMu.RUnlock()
	return codes[code]
}

// Fate is the outcome of a failed call.
type Fate uint8

const (
	// FateUnknown: the request left this side, and nothing is known of it. It may have been
	// executed.
	FateUnknown Fate = iota
	// FateNotSent: the request, or a part of it, never left this side.
	FateNotSent
	// FateRefused: the server has answered without calling the handler.
	FateRefused
	// FateDelivered: the server has taken the request, and the connection ended before it answered.
	FateDelivered
	// FateAnswered: the error is the handler's.
	FateAnswered
)

var fates = [...]string{"may have been executed", "not sent", "refused", "delivered, not answered", "answered"}

func (f Fate) String() string {
	if int(f) < len(fates) {
		return fates[f]
	}
	return fmt.Sprintf("Fate(%d)", uint8(f))
}

// MarshalText returns String's text.
func (f Fate) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// NotExecuted reports whether the handler was certainly not called, so that any call may be
// repeated.
func (f Fate) NotExecuted() bool { return f == FateNotSent || f == FateRefused }

// Error is why a call failed. A handler may return one to set code, message and details. Its other
// fields are not sent. If a handler's error wraps one (with %w), its text is sent, with Message in
// the place of the *Error's text.
type Error struct {
	Code    Code
	Message string // the handler's error, or details of the code
	Details []byte // from the handler; see NewError and DetailsOf
	Method  string
	// Server is the address of the server that the last attempt was made at, as the client knows
	// it, and Attempts the number of attempts. "" and 0: it is not the error of a client's call.
	Server   string
	Attempts int
	Fate     Fate
	Err      error // why a connection ended, or another local cause; may be nil
}

// NewError makes an error for a handler to return. of gives the code: it is an error that
// RegisterCode has made, or one of this package's. details are of any type that a Method can
// carry. nil: there are none.
func NewError[D any](of error, message string, details *D) (*Error, error) {
	e := &Error{Code: codeOf(of), Message: message}
	if details == nil {
		return e, nil
	}
	c, err := codecOf[D](nil)
	if err != nil {
		return nil, err
	}
	e.Details, err = c.tryEncode(nil, details)
	return e, err
}

// DetailsOf decodes the details of a call's error. Not ok: it has none, or they cannot be decoded
// as a D.
func DetailsOf[D any](err error) (details *D, ok bool) {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Details) == 0 {
		return nil, false
	}
	c, cerr := codecOf[D](nil)
	if cerr != nil {
		return nil, false
	}
	details = new(D)
	return details, c.tryDecode(e.Details, details) == nil
}

// Error returns the text for logs. Message has the peer's text, unchanged.
func (e *Error) Error() string {
	s := "rpc"
	if e.Method != "" {
		s += ": " + e.Method
	}
	if e.Server != "" && e.Fate != FateAnswered { // of an answer it is only in the field
		s += " at " + e.Server
	}
	switch of := sentinelOf(e.Code); {
	case of != nil:
		s += ": " + of.text
	case e.Code != CodeUnknown:
		s += fmt.Sprintf(": code %d", e.Code)
	}
	if e.Message != "" {
		s += ": " + plain.Quote(e.Message)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	switch {
	case e.Fate != FateAnswered && e.Attempts > 1:
		s += fmt.Sprintf(" (%v, %d attempts)", e.Fate, e.Attempts)
	case e.Fate != FateAnswered:
		s += " (" + e.Fate.String() + ")"
	case e.Attempts > 1:
		s += fmt.Sprintf(" (%d attempts)", e.Attempts)
	}
	return s
}

// Unwrap returns the error registered for the code, and the cause.
func (e *Error) Unwrap() []error {
	var all []error
	if of := sentinelOf(e.Code); of != nil {
		all = append(all, of.errorValue())
	}
	if e.Err != nil {
		all = append(all, e.Err)
	}
	return all
}

// badMessage returns the error of a call whose codec has refused a message. what names the message:
// "request", "reply" or "item".
func badMessage(m *method, what string, err error, f Fate) *Error {
	return &Error{Code: CodeBadMessage, Method: m.name, Message: what, Fate: f, Err: err}
}

// tooLarge returns the error of a message of n bytes for a peer that takes limit, a frame's header
// included. what and peer ("Server" or "Client") name both.
func tooLarge(m *method, what, peer string, n, limit int, f Fate) *Error {
	return &Error{
		Code: CodeTooLarge, Method: m.name, Fate: f,
		Message: fmt.Sprintf("%s has %d bytes, at most %d fit into a message to the %s (%sConfig.MaxMessage there: %d)",
			what, n, limit-wire.HeaderLen, strings.ToLower(peer), peer, limit),
	}
}

// codeOf returns the code of an error that a handler has returned.
func codeOf(err error) Code {
	if s, ok := errors.AsType[*sentinel](err); ok {
		return s.code
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return CodeDeadline
	case errors.Is(err, context.Canceled):
		return CodeCanceled
	}
	return CodeUnknown
}

// CodeOf returns the code of a call's error, or the one that a handler's error is sent with. Of nil
// it is 0.
func CodeOf(err error) Code {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code != 0 {
		return e.Code
	}
	return codeOf(err)
}

// wireError returns the parts of a handler's error that are sent.
func wireError(err error) (code Code, text string, details []byte) {
	if e, ok := errors.AsType[*Error](err); ok && e.Code != 0 {
		text = e.Message
		if text == "" && e.Err != nil {
			text = e.Err.Error()
		}
		// another error wraps it: send the text of that, with this message in it
		if of, whole := sentinelOf(e.Code), err.Error(); whole != e.Error() {
			if text == "" && of != nil {
				text = of.text
			}
			text = strings.Replace(whole, e.Error(), text, 1)
		}
		return e.Code, text, e.Details
	}
	code = codeOf(err)
	text = err.Error()
	if of := sentinelOf(code); of != nil && of.errorValue().Error() == text {
		text = "" // implied by the code
	}
	return code, text, nil
}

// ProtocolError describes a violation of the protocol in docs/rpc-wire.md by the peer. It ends
// that connection only. errors.Is: EPROTO.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string { return "rpc: protocol error: " + e.What }

// Unwrap returns EPROTO.
func (e *ProtocolError) Unwrap() error { return unix.EPROTO }

func violationError(format string, args ...any) error {
	return malformedError(fmt.Errorf(format, args...))
}

// malformedError returns the error of a connection whose peer has sent data that cannot be parsed.
func malformedError(err error) error { return &ProtocolError{err.Error()} }

// contextError returns the error of a call whose context has ended.
func contextError(ctx context.Context, m *method, f Fate) *Error {
	e := &Error{Code: CodeCanceled, Method: m.name, Fate: f}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Code = CodeDeadline
	}
	if cause := context.Cause(ctx); !errors.Is(ctx.Err(), cause) {
		e.Err = cause
	}
	return e
}

// onLoop returns the error of a call that waits on a loop's goroutine, which must not wait. nil:
// this is not a loop's goroutine.
func onLoop(m *method, f Fate) *Error {
	if err := eventloop.MayWait(); err != nil {
		return &Error{Code: CodeCanceled, Method: m.name, Fate: f, Err: err}
	}
	return nil
}

// withMethod sets the method in an error.
func withMethod(err error, m *method) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Method = m.name
	}
	return err
}
