package core

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// Times of set-up and end.
const (
	replyTimeout   = 10 * time.Second       // an initiator waits for the Reply, as siw does
	requestTimeout = 5 * time.Second        // a responder waits for the Request, as siw does
	holdOff        = 100 * time.Millisecond // a responder's first FPDU stays this far behind its Reply, once the peer has that
	messageTimeout = 30 * time.Second       // without a byte in the middle of a message
	fin            = 5 * time.Second        // for the peer's FIN after ours
	finAfterError  = time.Second            // the same when we have just sent a Terminate or a reject
	abortReply     = 100 * time.Millisecond // an aborted initiator waits for the Reply: siw's listener dies of a reset before
)

// state is where a connection stands.
type state uint8

const (
	stIdle      state = iota // before Start
	stRequest                // responder: waiting for the Request
	stAnswer                 // responder: the owner has the Request
	stReply                  // initiator: waiting for the Reply
	stAccepted               // responder: Reply under way, or waiting for the first FPDU of a peer-to-peer initiator
	stOpen                   // established
	stFinishing              // Disconnect or Shutdown: output runs out, input still counts
	stEnded                  // nothing is sent or taken any more, but a Terminate or a rejecting Reply
)

var stateNames = [...]string{
	"idle", "waiting for a Request", "a Request is unanswered", "waiting for a Reply", "accepting", "open", "finishing", "ended",
}

func (s state) String() string { return stateNames[s] }

// Conn is one connection, usable by value after Init and small while idle. Not safe for concurrent use.
type Conn struct {
	up    Upcalls
	cfg   Config
	state state

	closed   bool // Closed was called
	closeNow bool // the socket is to be closed
	shut     bool // FIN as soon as everything is out
	gone     bool // the initiator left before it was answered
	crc      bool // CRC in use
	p2p      bool // the initiator owes the first FPDU
	asked    bool // a responder's Request had the control word

	rev      uint8 // a responder: the Request's revision
	reqFlags wire.Flags
	peer     wire.Control // the other side's control word
	ird, ord uint16       // negotiated

	phaseAt time.Time // when the state has lasted too long; zero: never
	mpa     []byte    // the peer's MPA frame as far as it is here

	sq ring[send]
	rq ring[verbs.RecvWR]
	tx tx
	rx rx
}

// Init prepares c. EINVAL for private data longer than MaxPrivateData, an IRD or ORD above MaxIRD, or an unknown revision.
func (c *Conn) Init(cfg Config, up Upcalls) error {
	if cfg.Revision == 0 {
		cfg.Revision = wire.MaxRevision
	}
	if cfg.Revision > wire.MaxRevision {
		return fmt.Errorf("iwarp: MPA revision %d: %w", cfg.Revision, unix.EINVAL)
	}
	if err := checkParam(cfg.PrivateData, cfg.IRD, cfg.ORD); err != nil {
		return err
	}
	if cfg.MessageTimeout <= 0 {
		cfg.MessageTimeout = messageTimeout
	}
	cfg.PrivateData = append([]byte(nil), cfg.PrivateData...)
	if cfg.SetupTimeout <= 0 {
		cfg.SetupTimeout = requestTimeout
		if cfg.Initiator {
			cfg.SetupTimeout = replyTimeout
		}
	}
	*c = Conn{cfg: cfg, up: up}
	c.SetMaxSegment(cfg.MaxSegment)
	c.tx.msn, c.tx.readMSN, c.rx.msn, c.rx.readMSN = 1, 1, 1, 1
	c.rx.need = headLen
	return nil
}

func checkParam(private []byte, ird, ord uint16) error {
	switch {
	case len(private) > MaxPrivateData:
		return fmt.Errorf("iwarp: %d bytes of private data, more than %d: %w", len(private), MaxPrivateData, unix.EINVAL)
	case ird > MaxIRD || ord > MaxIRD:
		return fmt.Errorf("iwarp: IRD %d, ORD %d, more than %d: %w", ird, ord, MaxIRD, unix.EINVAL)
	}
	return nil
}

// SetMaxSegment changes Config.MaxSegment for FPDUs not yet made; 0 means the constant MaxSegment, which is the most.
func (c *Conn) SetMaxSegment(n int) {
	if n <= 0 || n > MaxSegment {
		n = MaxSegment
	}
	c.cfg.MaxSegment = n
}

// CRC is true once CRC was agreed on.
func (c *Conn) CRC() bool { return c.crc }

// Deadline is when Timeout is to be called, if at all; it may be in the past. It may change with every call into c.
func (c *Conn) Deadline() (time.Time, bool) {
	if c.tx.lost != nil {
		return time.Unix(0, 0), !c.closeNow
	}
	t := earlier(earlier(c.phaseAt, c.tx.wireAt), c.stallAt())
	return t, !t.IsZero() && !c.closeNow
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// stallAt is when a message that is half here has been waiting for its next byte for too long; zero: there is none.
func (c *Conn) stallAt() time.Time {
	if c.state != stOpen && c.state != stFinishing || !c.rx.busy() || c.rx.wait.message {
		return time.Time{}
	}
	return c.rx.heardAt.Add(c.cfg.MessageTimeout)
}

// Overdue is true when Timeout would give up a peer that is silent, in the set-up or in the middle
// of a message. If the owner was slow, not the peer, there is something to read: look first.
func (c *Conn) Overdue(now time.Time) bool {
	switch c.state {
	case stReply, stRequest, stAccepted:
		return !c.phaseAt.IsZero() && !now.Before(c.phaseAt)
	case stIdle, stAnswer, stOpen, stFinishing, stEnded:
	}
	return c.stalled(now)
}

// stalled is Overdue in the middle of a message.
func (c *Conn) stalled(now time.Time) bool {
	at := c.stallAt()
	return !at.IsZero() && !now.Before(at)
}

// Timeout does what is due at now; harmless when nothing is.
func (c *Conn) Timeout(now time.Time) {
	if f := c.tx.lost; f != nil {
		c.tx.lost = nil
		c.fail(now, f)
		return
	}
	if at := c.tx.wireAt; !at.IsZero() && !now.Before(at) {
		c.wireTimeout(now)
	}
	if c.stalled(now) {
		c.closeNow, c.phaseAt = true, time.Time{}
		c.end(&Error{Op: "receive", Errno: unix.ETIMEDOUT, Text: fmt.Sprintf(
			"nothing for %v in the middle of a message", c.cfg.MessageTimeout)})
	}
	if !c.phaseAt.IsZero() && !now.Before(c.phaseAt) {
		c.phaseTimeout()
	}
}

// silence is what a peer may be that has not answered a Request: nothing tells one from the other.
const silence = "the peer is busy, or what listens there does not speak iWARP"

func (c *Conn) phaseTimeout() {
	c.phaseAt = time.Time{}
	c.closeNow = true
	late := &Error{Op: "receive", Errno: unix.ETIMEDOUT}
	switch c.state {
	case stReply:
		late.Op, late.Text = "reply", fmt.Sprintf(
			"TCP is connected, but no Reply came within %v, %d bytes of it: %s", c.cfg.SetupTimeout, len(c.mpa), silence)
		c.rejected(nil, late)
	case stRequest:
		late.Op, late.Text = "request", fmt.Sprintf("no complete Request within %v, %d bytes of it", c.cfg.SetupTimeout, len(c.mpa))
		c.end(late)
	case stAccepted:
		late.Text = fmt.Sprintf("no sign of life within %v of accepting", c.cfg.SetupTimeout)
		c.end(late)
	case stFinishing:
		late.Op, late.Text = "close", fmt.Sprintf("output or the peer's FIN not done within %v", fin)
		c.end(late)
	case stIdle, stAnswer, stOpen, stEnded: // ended: the peer had its time to read the Terminate
	}
}

// WantClose says what to do with the socket: shut down the write side (stays true; do it once), or close it and forget c.
func (c *Conn) WantClose() (shutdownWrite, closeNow bool) { return c.finReady(), c.closeNow }

// finReady is true when a FIN is wanted and nothing is left to go before it.
func (c *Conn) finReady() bool {
	t := &c.tx
	return c.shut && t.raw == nil && t.batch == nil && t.ctl == 0 && t.owed.n == 0 && c.sq.n == 0
}
