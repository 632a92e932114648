package hostile

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// What Want assumes of the attacked side.
const (
	Receives   = 4    // receives posted
	ReceiveLen = 1024 // bytes of each
	Depth      = 4    // its IRD and ORD
)

// Side is which side opens the TCP connection of an exchange.
type Side uint8

// The sides.
const (
	Either  Side = iota
	Dials        // the hostile peer is MPA's initiator
	Answers      // the hostile peer is MPA's responder
)

// Outcome is what is reported to the owner of the attacked end.
type Outcome uint8

// The outcomes.
const (
	Anything     Outcome = iota // depends on timing
	Nothing                     // not even a ConnectRequest
	Orderly                     // Established, then Disconnected without an error
	Failed                      // Established, then Disconnected with an error
	Refused                     // Rejected
	ConnectError                // ConnectError
	Unreachable                 // Unreachable
)

// Term is the kind of a Terminate message. The zero value, which nobody sends, is none.
type Term struct {
	Layer      wire.Layer
	Type, Code uint8
}

// Want is how an exchange has to end.
type Want struct {
	Outcome Outcome
	Errno   unix.Errno // in the reported error
	Text    string     // found in the reported error
	Term    Term       // the Terminate that the hostile peer reads, and the error names
	Copy    bool       // the Terminate carries the length and the headers of the offending segment
	ByPeer  bool       // Term is the hostile peer's own: the error names it, and it is not answered
	Reject  bool       // the hostile peer reads a Reply that rejects
	// Hit is the status of the receive or the Read that the error hit; success: nothing special.
	Hit verbs.Status
}

// Exchange is one attack of a hostile peer.
type Exchange struct {
	// Name is unique.
	Name string
	// Rule is what it breaks: a section of an RFC, or what a robust endpoint has to expect.
	Rule string
	Side Side
	// CRC is true if the exchange makes sense only with CRC.
	CRC bool
	// Reads is how many bytes the victim has to Read from the peer once established; 0: none.
	Reads uint32
	// Regions is true if it needs Options.Regions.
	Regions bool
	// Slow is true if it ends only by a time limit of the other side.
	Slow bool
	// Want is how it has to end.
	Want Want

	raw bool // run does the set-up itself
	run func(*Peer)
}

// Region is memory of the other side that the peer knows of.
type Region struct {
	STag uint32
	TO   uint64
	Len  uint32
}

// Regions is the other side's memory that the peer knows of: one region of each kind, each of
// RegionLen bytes.
type Regions struct {
	Both      Region // remote read and write
	ReadOnly  Region // remote read
	WriteOnly Region // remote write
	Local     Region // local write only
	Foreign   Region // of another protection domain, otherwise as Both
	Freed     Region // deregistered
}

// Options are what an exchange knows and chooses.
type Options struct {
	// CRC asks for CRC in set-up.
	CRC bool
	// Timeout bounds every wait; 0: 10 s.
	Timeout time.Duration
	// Regions is what the other side has registered. The zero value is none, because STag 0 is
	// never used.
	Regions Regions
}

// End is how the other side ended the connection.
type End uint8

// The ends.
const (
	StillOpen End = iota // it did not end it within Options.Timeout
	FIN
	Reset
	Left // the hostile peer did not wait for it
)

// Result is what the hostile peer saw.
type Result struct {
	Frame     *wire.Frame     // the other side's Request or Reply; nil: none, or a malformed one
	FPDUs     int             // that were right
	Sends     int             // of these, last segments of Sends
	Terminate *wire.Terminate // nil: none
	// Offending is the ULPDU that was wrong on purpose; nil: no particular one.
	Offending []byte
	End       End
	// Wrong says what is wrong with the other side's bytes; "": nothing.
	Wrong string
}
