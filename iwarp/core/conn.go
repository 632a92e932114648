package core

import (
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// Conn is one connection, usable by value after Init and small while idle. Not safe for concurrent use.
type Conn struct {
	up  Upcalls
	cfg Config
}

// Pool lends output memory to the Conns of one goroutine. The zero value is ready.
type Pool struct{ free []*struct{} }

// Init prepares c. EINVAL for private data longer than MaxPrivateData, an IRD or ORD above MaxIRD, or an unknown revision.
func (c *Conn) Init(cfg Config, up Upcalls) error { c.cfg, c.up = cfg, up; return nil }

// Start begins set-up: an initiator's Request becomes pending, a responder waits for one.
func (c *Conn) Start(now time.Time) {}

// Accept answers the Request: Reply with private data (at most MaxPrivateData bytes) and this side's limits, of which ord is
// lowered to what the initiator can take. ECONNRESET if the initiator is gone, EINVAL if there is nothing to answer.
func (c *Conn) Accept(now time.Time, private []byte, ird, ord uint16) error { return nil }

// Reject answers the Request with a Reply that says no, then ends the connection. Errors as Accept.
func (c *Conn) Reject(now time.Time, private []byte) error { return nil }

// PostSend queues wr. EINVAL: not connected, over, or malformed; ENOMEM: Config.SendWRs are outstanding;
// verbs.ErrNotSupported: an operation other than Send and SendWithInvalidate.
func (c *Conn) PostSend(wr *verbs.SendWR) error { return nil }

// PostRecv queues wr; legal from Init on. EINVAL: over, malformed, or there is an SRQ; ENOMEM: Config.RecvWRs are outstanding.
func (c *Conn) PostRecv(wr verbs.RecvWR) error { return nil }

// Input takes bytes from the peer, in any fragmentation. b may be reused afterwards.
func (c *Conn) Input(now time.Time, b []byte) {}

// Landing is where the rest of the payload now arriving goes, when that is much (at least LandingMin bytes); nil otherwise. Bytes may be read from
// the socket straight into it; Landed then says how many. Valid until the next call into c.
func (c *Conn) Landing() []byte { return nil }

// Landed is Input for n bytes that were read into the start of Landing.
func (c *Conn) Landed(now time.Time, n int) {}

// InputEnd says that the peer's stream is over: FIN (nil) or a socket error.
func (c *Conn) InputEnd(now time.Time, err error) {}

// Gather appends to dst the slices to write next, as many as fit cap(dst) (up to 1024 if dst has no room at all).
func (c *Conn) Gather(dst [][]byte) [][]byte { return dst }

// GatherFPDU is Gather up to the end of one FPDU: for a peer with CRC, to whom every FPDU should go in a TCP segment of its own
// (sendmsg with MSG_EOR; see CRC and SetMaxSegment).
func (c *Conn) GatherFPDU(dst [][]byte) [][]byte { return dst }

// Advance says that the socket took the first n bytes of what Gather gave.
func (c *Conn) Advance(now time.Time, n int) {}

// Pending is true while Gather has something.
func (c *Conn) Pending() bool { return false }

// WantClose says what to do with the socket: shut down the write side (stays true; do it once), or close it and forget c.
func (c *Conn) WantClose() (shutdownWrite, closeNow bool) { return false, false }

// CRC is true once CRC was agreed on.
func (c *Conn) CRC() bool { return false }

// SetMaxSegment changes Config.MaxSegment for messages not yet started.
func (c *Conn) SetMaxSegment(n int) {}

// Disconnect ends the connection (rdma_disconnect(3)): sends that have not started complete flushed, a started one is finished,
// then FIN. Closed comes with the peer's FIN, or after 5 s.
func (c *Conn) Disconnect(now time.Time) {}

// Shutdown is Disconnect after everything queued was sent.
func (c *Conn) Shutdown(now time.Time) {}

// Abort ends the connection at once: everything is flushed and Closed called before it returns.
func (c *Conn) Abort(now time.Time) {}

// Deadline is when Timeout is to be called, if at all. It may change with every call into c.
func (c *Conn) Deadline() (time.Time, bool) { return time.Time{}, false }

// Timeout does what is due at now; harmless when nothing is.
func (c *Conn) Timeout(now time.Time) {}
