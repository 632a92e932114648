package core

import (
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// Limits of a Conn.
const (
	// MaxPrivateData bounds the private data of Config, Accept and Reject, in bytes. RFC 5044
	// allows 512 with the control word; soft-iWARP receives 252 and sends 251, so this is what
	// every peer can carry.
	MaxPrivateData = 248
	// MaxSegment bounds the payload bytes of a sent FPDU: the 16-bit ULPDU length less the header,
	// rounded down.
	MaxSegment = 65504
	// MaxSGE bounds the scatter/gather elements of one send.
	MaxSGE = 32
	// MaxInline bounds the inline bytes of one send.
	MaxInline = 256
	// UnagreedIRD is how many of the peer's Reads are served at least where the MPA frames agree
	// on no number (revision 1). Then the peer's owner chooses how many it has outstanding, and
	// soft-iWARP's maximum is this. An initiator also raises its IRD up to it if the Reply asks
	// for more Reads.
	UnagreedIRD = 128
	// MaxIRD is the largest IRD or ORD that the 14-bit fields carry; 0x3fff means "not negotiated
	// here" (RFC 6581 section 9.1).
	MaxIRD = 0x3ffe
)

// Config has the options of a connection. The zero value is a responder with revision 2, no
// receive queue and no send queue.
type Config struct {
	// Initiator is true at the side that opened the TCP connection.
	Initiator bool
	// Revision is the MPA revision of an initiator's Request: 1 or 2; 0 means 2. A responder
	// answers the revision it is asked in.
	Revision uint8
	// PrivateData goes into an initiator's Request: at most MaxPrivateData bytes, which must not
	// change before BeginSetup.
	PrivateData []byte
	// IRD and ORD are an initiator's inbound and outbound Read limits, announced by a revision 2
	// Request.
	IRD, ORD uint16
	// PeerToPeer makes a revision 2 initiator ask for the peer-to-peer model with a zero-length
	// Write or Read as ready-to-receive (RFC 6581 section 9.2). A responder follows the Request.
	PeerToPeer bool
	// CRC asks the peer for CRC32c in both directions. A peer that asks for CRC gets it in any
	// case.
	CRC bool
	// Withheld are rights that the peer does not have, whatever a region allows.
	Withheld verbs.Access
	// MaxSegment bounds the payload bytes of one FPDU; 0 means the constant MaxSegment.
	MaxSegment int
	// Queues is the queue pair's part.
	Queues
	// Pool lends the memory for headers and trailers while output is pending. Conns of one loop
	// share one; nil: allocated when needed and left to the garbage collector.
	Pool *Pool
	// SetupTimeout bounds set-up: at an initiator from BeginSetup to the Reply (0: 10 s), at a
	// responder from BeginSetup to the Request, and again from Accept to Established (0: 5 s).
	SetupTimeout time.Duration
	// MessageTimeout bounds the silence of a peer in the middle of a message, whose receive it
	// occupies (0: 30 s).
	MessageTimeout time.Duration
}

// Request is a complete MPA Request at a responder.
type Request struct {
	// PrivateData is the initiator's, without the control word. The callee may keep it.
	PrivateData []byte
	// IRD and ORD are the initiator's limits; both 0 when Enhanced is false.
	IRD, ORD uint16
	// Revision is the MPA revision: 0, 1 or 2.
	Revision uint8
	// Enhanced is true if the Request had the revision 2 control word.
	Enhanced bool
	// PeerToPeer is true if the initiator asked for the peer-to-peer model; Established then comes
	// with its first FPDU.
	PeerToPeer bool
	// CRC is true if the initiator asked for CRC.
	CRC bool
}

// Upcalls are a Conn's reports to its owner, synchronous, from inside the owner's call into the
// Conn. An upcall may post work requests, Accept, Reject, Disconnect or Abort; it must not call
// Input, InputEnd, Landed, Resume, Advance, Gather or Timeout.
type Upcalls interface {
	// Request: a responder got a complete Request. Answer with Accept or Reject, now or any time
	// later.
	Request(r Request)
	// Established: the connection works. At an initiator with the Reply and its private data (the
	// callee may keep it). At a responder, with nil, when the Reply is on its way, or with the
	// first FPDU where the initiator asked for peer-to-peer. ird and ord are this side's
	// negotiated limits.
	Established(private []byte, ird, ord uint16)
	// Rejected: an initiator's set-up failed. err is an *Error whose errno is ECONNRESET or
	// ECONNREFUSED (rejected), ETIMEDOUT (unreachable) or EINVAL (connect error); errors.Is(err,
	// ErrNoReply) when the peer hung up before any byte of a Reply. private is the private data of
	// a rejecting Reply. Closed follows.
	Rejected(private []byte, err error)
	// Complete: a work request is done, in posting order per queue: the receive queue's have the
	// Op verbs.Recv. wc has no QP. solicited: it is a receive whose sender asked for a solicited
	// event. A send that was not signalled completes only if it failed.
	Complete(wc verbs.WC, solicited bool)
	// Closed: the connection is over; exactly once, the last upcall. nil for an orderly end, else
	// an *Error. The socket may still have a Terminate to carry: the owner goes on with Gather and
	// Advance until WantClose returns closeNow.
	Closed(err error)
}

// Queues is a queue pair's part of its connection. The zero value has room for nothing.
type Queues struct {
	// SendWRs and RecvWRs bound the work requests outstanding per queue. The rings grow on demand.
	SendWRs, RecvWRs int
	// SRQ, if not nil, has the receives, which are taken when the first segment of a message
	// arrives; PostRecv is then EINVAL.
	SRQ RecvSource
	// PD is the protection domain. Every region that a work request or the peer names must be in
	// it; work requests may also name regions in Regions.Shared. nil is for tests, and is the
	// domain of regions with a nil PD.
	PD verbs.PD
	// Regions is the memory that the peer can name; nil: none.
	Regions *Regions
}

// RecvSource is the interface of a shared receive queue to a connection.
type RecvSource interface {
	// HasRecv is true if there is a receive for the connection now.
	HasRecv() bool
	// TakeRecv removes and returns the oldest receive, which CheckRecv has accepted. It is called
	// only after HasRecv was true.
	TakeRecv() verbs.RecvWR
	// WaitsIfEmpty is true if a message that finds no receive waits for Conn.Resume. Otherwise it
	// ends its connection.
	WaitsIfEmpty() bool
}

// LandingMin is the least number of bytes for which Conn.Landings offers memory.
const LandingMin = 16384
