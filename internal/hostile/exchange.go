package hostile

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// What Want assumes about the attacked side.
const (
	Receives   = 4    // receives posted
	ReceiveLen = 1024 // bytes per receive
	Depth      = 4    // its IRD and ORD
	mostDepth  = 128  // to which a device raises its IRD, if the Reply asks for more Reads
)

// Side is the side that opens the TCP connection of an exchange.
type Side uint8

// The sides.
const (
	Either  Side = iota
	Dials        // the hostile peer is MPA's initiator
	Answers      // the hostile peer is MPA's responder
)

// Outcome is what the attacked end reports to its owner.
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

// Term is the kind of a Terminate message. The zero value, which is never sent, means no Terminate.
type Term struct {
	Layer      wire.Layer
	Type, Code uint8
}

// Want is how an exchange must end.
type Want struct {
	Outcome Outcome
	Errno   unix.Errno // in the reported error
	Text    string     // found in the reported error
	Term    Term       // the Terminate that the hostile peer reads, and the error names
	Copy    bool       // the Terminate carries the length and the headers of the offending segment
	ByPeer  bool       // the hostile peer sends Term: the error names it, and it is not answered
	Reject  bool       // the hostile peer reads a Reply that rejects
	// Hit is the status with which the affected receive or Read completes. StatusSuccess means that
	// nothing is required.
	Hit verbs.Status
}

// Exchange is one attack of a hostile peer.
type Exchange struct {
	// Name is unique.
	Name string
	// Rule is the rule that it breaks: a section of an RFC, or a situation that a robust endpoint
	// must expect.
	Rule string
	Side Side
	// CRC means that the exchange makes sense only with CRC.
	CRC bool
	// Reads is how many bytes the victim must Read from the peer once the connection is
	// established. 0 means no Read.
	Reads uint32
	// Regions means that the exchange needs Options.Regions.
	Regions bool
	// Slow means that only a time limit of the other side ends the exchange.
	Slow bool
	// Want is how the exchange must end.
	Want Want

	raw bool // run does the set-up itself
	run func(*Peer)
}

// Region is memory of the other side that the peer knows.
type Region struct {
	STag uint32
	TO   uint64
	Len  uint32
}

// Regions is the memory of the other side that the peer knows: one region of each kind, each of
// RegionLen bytes.
type Regions struct {
	Both      Region // remote read and write
	ReadOnly  Region // remote read
	WriteOnly Region // remote write
	Local     Region // local write only
	Foreign   Region // of another protection domain, otherwise as Both
	Freed     Region // deregistered
}

// Options are the parameters of an exchange.
type Options struct {
	// CRC makes the peer ask for CRC in set-up.
	CRC bool
	// Timeout bounds every wait. 0 means 10 s.
	Timeout time.Duration
	// Regions is the memory that the other side has registered. The zero value means none, because
	// STag 0 is never used.
	Regions Regions
}

// End is how the other side ended the connection.
type End uint8

// The ends.
const (
	StillOpen End = iota // it did not, within Options.Timeout
	FIN
	Reset
	Left // the hostile peer did not wait for it
)

// Result is what the hostile peer saw.
type Result struct {
	Frame     *wire.Frame     // the other side's Request or Reply; nil: none, or a malformed one
	FPDUs     int             // correct ones that were read
	Sends     int             // how many of these were last segments of Sends
	Terminate *wire.Terminate // nil: none
	// Offending is the ULPDU that was wrong on purpose. It is nil if no particular one was.
	Offending []byte
	End       End
	// Wrong describes an error in the other side's bytes. It is empty if there is none.
	Wrong string
}
