package reconnect

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Send is a message whose fate is reported to the owner, by Tag. NewSend makes one. It belongs to
// the reconnecting actor once it was sent. The fate of a plain *rdma.Send is not reported, but
// counted.
type Send struct {
	Message *rdma.Send
	Tag     uint64 // the owner's name for it; need not be unique
	// it may be delivered twice, so it is sent again also if its fate is Unknown
	Idempotent bool
	// the fate is not reported, but counted, as that of a plain *rdma.Send; Tag is not used
	Quiet bool

	taken bool // Message is reserved, after a Post that has found no room
}

var sends = sync.Pool{New: func() any { return new(Send) }}

// NewSend makes a message of a copy of p, which is reported as tag. Any goroutine may call it.
func NewSend(tag uint64, p []byte) *Send {
	s := sends.Get().(*Send)
	s.Message, s.Tag = rdma.NewSend(p), tag
	return s
}

// Drain ends a reconnecting actor in order, as rdma.Close does. But the actor connects again if
// necessary, in order to send the accepted messages. It does so until Timeout is over (5 s if it is
// 0). Then Closed is delivered. Its Err is not nil if Timeout was over first.
type Drain struct{ Timeout time.Duration }

// Address changes the address of the next attempts. An actor that had no address dials immediately.
// An empty Addr is Refused.
type Address struct{ Addr string }

// Break ends the generation, if it is the present one, for a reason that the owner gives, such as
// bytes that it does not understand: Down has Err. After a pause the next attempt follows. Messages
// that the device already has leave first, as with *rdma.DestroyID.
type Break struct {
	Generation uint64
	Err        error
}

// Outcome is the fate of a message in one generation.
type Outcome uint8

// The outcomes.
const (
	Delivered Outcome = iota + 1 // the peer has consumed it
	Unsent                       // it never left this side
	// it left, and the connection ended before the peer reported it as consumed
	Unknown
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Delivered:
		return "delivered"
	case Unsent:
		return "unsent"
	case Unknown:
		return "unknown"
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// MarshalText returns String's text.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Fate is the outcome of a tagged message. Each message that was accepted gets exactly one that is
// not Again, unless it is Refused afterwards, or the actor is stopped from outside.
type Fate struct {
	Tag     uint64
	Outcome Outcome
	Again   bool // it waits for the next generation and will have another fate
}

// Counts are messages by their last fate, tagged or not.
type Counts struct{ Delivered, Unsent, Unknown uint64 }

func (c *Counts) add(o Outcome) {
	switch o {
	case Delivered:
		c.Delivered++
	case Unsent:
		c.Unsent++
	case Unknown:
		c.Unknown++
	}
}

// The owner's messages, besides *rdma.Received and *rdma.Writable.
type (
	// Up: there is a connection. Every *rdma.Received until the next Down belongs to it, and has
	// the ID of Established. The waiting messages are sent now.
	Up struct {
		Generation  uint64
		Accepted    bool // the peer has dialled (Peers), not this side
		Established *rdma.Established
		// the peer's, from its hello; 0: it has no Peers
		Node, Incarnation uint64

		link *link // nil: the owner is not on its loop
	}
	// Settled has the fates of tagged messages that have become known while the connection lasts,
	// in the order of sending.
	Settled struct {
		Generation uint64
		Fates      []Fate
	}
	// Down: the generation is over, or has never been Up. Fates are those of its tagged messages
	// that were not reported before, and of the waiting ones, in the order of sending.
	Down struct {
		Generation uint64
		WasUp      bool
		Fates      []Fate
		Counts     Counts // of the whole generation; without the messages that wait for the next
		Waiting    int    // messages that wait for the next generation
		// the cause. nil: the peer or this side has ended it in order. rdma.ErrPeerLost: neither
		// has
		Err error
		// on the loop's clock (rdma.Local), the limiter's wait not included; zero: Closed follows
		NextTry time.Time
		// a request of the peer takes its place, and is being accepted: Up or Down follows
		Accepting bool
	}
	// Refused: a message was not accepted. With rdma.ErrTooLarge it may have been accepted before,
	// and have waited for a connection whose peer then does not accept that size. In that case this
	// is the last report of it, it is in no Counts, and an earlier Fate remains true. A *Refused is
	// an error itself.
	Refused struct {
		Tag   uint64 // 0 for a plain *rdma.Send
		Bytes int
		Err   error // rdma.ErrQueueFull, ErrDown, ErrClosing, rdma.ErrTooLarge, EINVAL
	}
	// Closed is the last message. The actor stops.
	Closed struct {
		Err    error  // nil: the owner has asked for it
		Fates  []Fate // of the tagged messages that waited, if it ended between two generations
		Counts Counts // of all generations
	}
)

// String is one line for logs.
func (d *Down) String() string {
	return fmt.Sprintf("generation %d is down: %s, %d waiting%s", d.Generation, d.Counts.text(), d.Waiting, endText(d.Fates, d.Err))
}

// String is one line for logs.
func (c *Closed) String() string { return "closed: " + c.Counts.text() + endText(c.Fates, c.Err) }

func (c Counts) text() string {
	return fmt.Sprintf("%d delivered, %d unsent, %d unknown", c.Delivered, c.Unsent, c.Unknown)
}

// endText returns the end of a line: fates and err, if there are any.
func endText(fates []Fate, err error) (s string) {
	if len(fates) > 0 {
		s = fmt.Sprintf(", fates %v", fates)
	}
	if err != nil {
		s += ": " + err.Error()
	}
	return s
}

// Error returns the size of the refused message, and the cause.
func (r *Refused) Error() string { return fmt.Sprintf("%d bytes refused: %v", r.Bytes, r.Err) }

// Unwrap returns the cause.
func (r *Refused) Unwrap() error { return r.Err }

// errQueueFull: Config.Queue messages wait. *rdma.Writable follows when there is room.
var errQueueFull = fmt.Errorf("%w (%w)", rdma.ErrQueueFull, unix.ENOBUFS)

// Reasons why messages are refused; errors.Is finds them in *Refused. For rdma.ErrQueueFull, which
// means that Config.Queue messages wait, *rdma.Writable follows when there is room.
var (
	// ErrDown: there is no connection, and Config.FailFast. errors.Is: ENOTCONN.
	ErrDown = fmt.Errorf("there is no connection now (%w)", unix.ENOTCONN)
	// ErrClosing: rdma.Close, Drain or DestroyID was sent before, or the actor has given up.
	// errors.Is: ESHUTDOWN.
	ErrClosing = fmt.Errorf("the reconnecting actor is closing (%w)", unix.ESHUTDOWN)
)

// Reasons why a reconnecting actor ends; errors.Is finds them in Closed.Err.
var (
	// ErrGaveUp: Config.Attempts attempts have failed, or Config.GiveUp is over. The last attempt's
	// error is in it, too.
	ErrGaveUp = errors.New("gave up connecting")
	// ErrPermanent: another attempt would fail in the same way (Config.Permanent). The failure is
	// in it, too.
	ErrPermanent = errors.New("not worth another attempt")
)
