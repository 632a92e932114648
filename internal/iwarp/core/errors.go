package core

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// ErrNoReply is found (errors.Is) in the error of an initiator whose peer closed the connection
// before any byte of a Reply. Some adapters that do not support revision 2 do that: try again,
// once, with Config.Revision 1 on a new TCP connection.
var ErrNoReply = errors.New("iwarp: closed before any MPA Reply")

// Error is the reason why a connection failed or was refused.
type Error struct {
	// Op is the phase: "request", "reply", "receive", "terminate", "close".
	Op string
	// Sent is true if a Terminate message with Layer, Type and Code was queued for the peer,
	// Received if the peer sent it.
	Sent, Received bool
	// Layer, Type and Code classify a protocol error in the terms of the Terminate message (RFC
	// 5040 section 4.8); they mean something only if Protocol is true.
	Layer      wire.Layer
	Type, Code uint8
	Protocol   bool
	// Rejected is true if the peer's application refused the connection, or its backlog was full:
	// a Reply with the R bit.
	Rejected bool
	// Errno is what errors.Is finds.
	Errno unix.Errno
	// Text describes the error, with the values that were wrong.
	Text string

	noReply bool
}

// Error returns phase, text, the Terminate's terms and the errno.
func (e *Error) Error() string {
	s := "iwarp: " + e.Op + ": " + e.Text
	if e.Protocol {
		who := "no Terminate sent"
		switch {
		case e.Received:
			who = "Terminate received"
		case e.Sent:
			who = "Terminate sent"
		}
		s += fmt.Sprintf(" (%s: %s)", who, wire.TerminateText(e.Layer, e.Type, e.Code))
	}
	return s + " [" + e.Errno.Error() + "]"
}

// Unwrap returns the errno.
func (e *Error) Unwrap() error { return e.Errno }

// Is matches ErrNoReply.
func (e *Error) Is(target error) bool { return target == ErrNoReply && e.noReply }

// hits are the statuses of the receive in use and of the Read being answered when a connection
// ends.
type hits struct{ recv, read verbs.Status }

var flushed = hits{verbs.StatusFlushed, verbs.StatusFlushed}

// fault is a wrong segment and what to answer.
type fault struct {
	err  Error
	hit  hits
	copy bool // the Terminate carries the segment's headers
}

func newFault(l wire.Layer, kind, code uint8, text string) *fault {
	return &fault{
		err: Error{Op: "receive", Protocol: true, Layer: l, Type: kind, Code: code, Errno: unix.EPROTO, Text: text},
		hit: flushed,
	}
}

// wireFault returns the fault for a codec's error.
func wireFault(err error) *fault {
	var w *wire.Error
	if !errors.As(err, &w) {
		return newFault(wire.LayerRDMAP, wire.RDMAPOperation, 7, err.Error())
	}
	return newFault(w.Layer, w.Type, w.Code, err.Error())
}

// ddpFault and rdmapFault return faults whose Terminate carries the headers.
func ddpFault(kind, code uint8, format string, args ...any) *fault {
	f := newFault(wire.LayerDDP, kind, code, fmt.Sprintf(format, args...))
	f.copy = true
	return f
}

func rdmapFault(kind, code uint8, format string, args ...any) *fault {
	f := newFault(wire.LayerRDMAP, kind, code, fmt.Sprintf(format, args...))
	f.copy = true
	return f
}

// hitBy sets the status of the work request that a segment of op was for.
func (f *fault) hitBy(op wire.Opcode, st verbs.Status) {
	switch {
	case op.Send():
		f.hit.recv = st
	case op == wire.OpReadResponse:
		f.hit.read = st
	}
}
