package core

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// Times of set-up and end.
const (
	replyTimeout   = 10 * time.Second // an initiator waits for the Reply, as siw does
	requestTimeout = 5 * time.Second  // a responder waits for the Request, as siw does
	// a responder's first FPDU stays this far behind its Reply, once the peer has that
	holdOff        = 100 * time.Millisecond
	messageTimeout = 30 * time.Second // without a byte in the middle of a message
	fin            = 5 * time.Second  // wait for the peer's FIN after ours
	// wait for the peer's FIN after a Terminate or a reject
	finAfterError = time.Second
	// an aborted initiator waits for the Reply, because an earlier reset would break siw's listener
	abortReply = 100 * time.Millisecond
)

// state is a connection's state.
type state uint8

const (
	stIdle    state = iota // before BeginSetup
	stRequest              // responder: waiting for the Request
	stAnswer               // responder: the owner has the Request
	stReply                // initiator: waiting for the Reply
	// responder: Reply under way, or waiting for the first FPDU of a peer-to-peer initiator
	stAccepted
	stOpen      // established
	stFinishing // Disconnect: the remaining output is written, input is still processed
	// nothing is received, and only a pending Terminate or rejecting Reply is still sent
	stEnded
)

var stateNames = [...]string{
	"idle", "waiting for a Request", "a Request is unanswered", "waiting for a Reply", "accepting", "open", "finishing", "ended",
}

func (s state) String() string { return stateNames[s] }

// Conn is one connection, usable by value after Init and small while idle. Not safe for concurrent
// use.
type Conn struct {
	up    Upcalls
	state state

	closed   bool      // Closed was called
	closeNow bool      // the socket is to be closed
	shut     bool      // FIN as soon as everything is out
	phaseAt  time.Time // when the state has lasted too long; zero: never

	setup  setup
	pacing pacing
	in     input
	out    output
	stream stream
}

// Init prepares c. EINVAL for private data longer than MaxPrivateData, an IRD or ORD above MaxIRD,
// or an unknown revision.
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
	if cfg.SetupTimeout <= 0 {
		cfg.SetupTimeout = requestTimeout
		if cfg.Initiator {
			cfg.SetupTimeout = replyTimeout
		}
	}
	*c = Conn{up: up}
	c.setup = setup{
		initiator: cfg.Initiator, revision: cfg.Revision, peerToPeer: cfg.PeerToPeer, crc: cfg.CRC,
		ird: cfg.IRD, ord: cfg.ORD, private: cfg.PrivateData, timeout: cfg.SetupTimeout,
	}
	c.in.seg.need, c.in.timeout = headLen, cfg.MessageTimeout
	c.out.pool = cfg.Pool
	s := &c.stream
	s.sends.keep = -1
	s.receives.msn, s.served.msn, s.sends.msn, s.sends.reads.msn = 1, 1, 1, 1
	c.SetMaxSegment(cfg.MaxSegment)
	c.SetQueues(cfg.Queues)
	c.Withhold(cfg.Withheld)
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

// SetMaxSegment changes Config.MaxSegment for FPDUs not yet made; 0 means the constant MaxSegment,
// which is the most.
func (c *Conn) SetMaxSegment(n int) {
	if n <= 0 || n > MaxSegment {
		n = MaxSegment
	}
	c.out.maxSegment = uint32(n)
}

// CRC is true once CRC was agreed on.
func (c *Conn) CRC() bool { return c.out.crc }

// WantClose reports whether to shut down the socket's write side (stays true; do it once), and
// whether to close the socket and forget c.
func (c *Conn) WantClose() (shutdownWrite, closeNow bool) {
	return c.shut && c.out.isEmpty() && c.pacing.due == 0 && c.stream.isIdle(), c.closeNow
}

// SetQueues changes Config.Queues: a responder learns them with its queue pair, after Init and
// before Accept. Work requests posted before stay.
func (c *Conn) SetQueues(q Queues) {
	s := &c.stream
	s.sends.limit, s.receives.limit, s.receives.srq = uint32(q.SendWRs), uint32(q.RecvWRs), q.SRQ
	s.access.pd, s.access.regions = q.PD, q.Regions
}

// Withhold changes Config.Withheld. A segment that was not checked yet is checked by it.
func (c *Conn) Withhold(rights verbs.Access) { c.stream.access.withheld = rights }

// TakeReceives moves the receives that were posted to from to c: either c is the next attempt to
// connect, or it is made only to be aborted. No message has begun to fill one of them, and c has no
// receives yet. Legal in Upcalls.Rejected.
func (c *Conn) TakeReceives(from *Conn) {
	a, b := &c.stream.receives, &from.stream.receives
	a.queue, b.queue = b.queue, a.queue
}

// SetPool changes Config.Pool, for a Conn that moves to another goroutine. The memory of its
// pending output moves along.
func (c *Conn) SetPool(p *Pool) {
	c.out.pool = p
	if b := c.out.batch; b != nil {
		b.pool = p
	}
}
