package frame

import "github.com/rdmactor/rdmactor/internal/enum"

// Version is the version that this package speaks. It stands in the Hello only.
const Version = 1

// Record is one statement of a node to another. Which fields a kind has is in the list of kinds.
// The others are not written, and are zero when they were read.
type Record struct {
	Kind          Kind
	Same          Same   // Reader: the fields that repeat the record before. A Writer finds out
	Target        string // an actor's id at the node that reads
	TargetRequest uint32
	Sender        PID
	Type          string // of the body; or the kind to spawn
	Header        []Pair
	Body          []byte // when it was read: part of the frame
	Seq           uint64 // names a Spawn for its answer
	Code          Code
	Reason        string
	Hello         *Hello // KindHello only
}

// PID is an actor anywhere. Without an ID it is empty.
type PID struct {
	Address string // "": the node that writes
	ID      string
	Request uint32
}

// Pair is one of a header.
type Pair struct{ Key, Value string }

// Hello is the first record of a node, in a separate frame.
type Hello struct {
	Version     uint8  // at least 1. A Writer writes Version
	Name        string // the address in PIDs
	Member      string // the member's id in a cluster; may be empty
	Incarnation uint64 // identifies one start of the node
	MaxMessage  uint32 // the longest frame that the node takes, in bytes; at least 1
}

// Same has a bit for each part that is as in the record before.
type Same uint8

// The bits of Same.
const (
	SameTarget Same = 1 << (iota + 4) // Target and TargetRequest
	SameSender
	SameType
)

// Kind is a record's kind.
type Kind uint8

// The kinds, and the fields that they have.
const (
	KindHello      Kind = iota + 1 // Hello. The first record each way
	KindGoodbye                    // Code, Reason. The last one: the link ends
	KindUser                       // Target, Sender (may be empty), Type, Header, Body: a message
	KindWatch                      // Target, Sender: Sender wants to know when Target terminates
	KindUnwatch                    // Target, Sender: it no longer watches
	KindTerminated                 // Sender has terminated, for Target who watches it; Code: why
	KindStop                       // Target is to stop
	KindSpawn                      // Seq, Type: the kind, Target: the name, or "" for any
	KindSpawned                    // Seq, Target: the id, Code, Reason: the answer to a Spawn
	KindRefused                    // Target and Sender of an undelivered message; Code, Reason
	kinds
)

var kindNames = [...]string{
	"a record", "Hello", "Goodbye", "User", "Watch", "Unwatch", "Terminated", "Stop", "Spawn", "Spawned", "Refused",
}

func (k Kind) String() string { return enum.At(kindNames[:], k, "Kind(%d)") }

// Code is a number behind a Goodbye, a Terminated, a Spawned or a Refused. Its meaning depends on
// the kind. Codes that are not known are read like others: their Reason still helps.
type Code uint8

// The codes of a Goodbye.
const (
	GoodbyeShutdown    Code = iota // the node shuts down
	GoodbyeVersion                 // the Hello has another version, or too small a MaxMessage
	GoodbyeName                    // the Hello has another name than is known
	GoodbyeIncarnation             // the Hello has another incarnation than the connection
	GoodbyeBlocked                 // the node may not connect
	GoodbyeBadFrame                // a frame had an error
	GoodbyeNoHello                 // something else came first, or nothing for too long
)

// The codes of a Terminated: Proto.Actor's reasons.
const (
	TerminatedStopped Code = iota
	TerminatedAddress
	TerminatedNotFound
)

// The codes of a Spawned.
const (
	SpawnedOK      Code = iota
	SpawnedExists       // another actor has that name
	SpawnedUnknown      // no such kind
	SpawnedDenied       // the node may not spawn it
	SpawnedFailed       // Reason contains the cause
)

// The codes of a Refused.
const (
	RefusedOther       Code = iota // Reason contains the cause
	RefusedDenied                  // the node may not do that
	RefusedUnknownType             // no codec has a type of that name
	RefusedUndecodable             // the codec could not decode it
	RefusedOverflow                // the actor does not consume its messages
	RefusedMeter                   // nothing was refused: hold back messages for the target
	RefusedAllow                   // nothing was refused: send it a little
	RefusedFree                    // nothing was refused: send it everything
)

// The fields of a kind.
const (
	hasTarget  = 1 << iota
	wantTarget // not empty
	hasSender
	wantSender // not empty
	hasType    // not empty
	hasBody    // and a header
	hasSeq
	hasCode
	hasReason
)

var parts = [kinds]uint16{
	KindGoodbye:    hasCode | hasReason,
	KindUser:       hasTarget | wantTarget | hasSender | hasType | hasBody,
	KindWatch:      hasTarget | wantTarget | hasSender | wantSender,
	KindUnwatch:    hasTarget | wantTarget | hasSender | wantSender,
	KindTerminated: hasTarget | wantTarget | hasSender | wantSender | hasCode,
	KindStop:       hasTarget | wantTarget,
	KindSpawn:      hasSeq | hasTarget | hasType,
	KindSpawned:    hasSeq | hasTarget | hasCode | hasReason,
	KindRefused:    hasTarget | wantTarget | hasSender | hasCode | hasReason,
}

// The first byte of a record is its kind, and these bits besides Same's.
const (
	kindBits   = 1<<4 - 1
	headerFlag = 1 << 7
)

// repeatableParts returns the bits of Same that a kind with these parts may have.
func repeatableParts(has uint16) (s Same) {
	if has&hasTarget != 0 {
		s |= SameTarget
	}
	if has&hasSender != 0 {
		s |= SameSender
	}
	if has&hasType != 0 {
		s |= SameType
	}
	return s
}

// before holds the values that the next record may refer to. At first it is empty.
type before struct {
	target  string
	request uint32
	sender  PID
	typ     string
}
