package core

import (
	"time"

	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// ctl is a set of FPDUs to send in addition to the application's.
type ctl uint8

const (
	ctlWrite ctl = 1 << iota // zero-length Write: ready-to-receive, or a kick
	ctlRead                  // zero-length Read Request: ready-to-receive
)

// tx is the sending side.
type tx struct {
	// sent first: an MPA frame, or at the end the rest of an FPDU and a Terminate
	raw     []byte
	batch   *batch    // FPDUs that were made and that the socket has not taken yet; nil: none
	staged  uint64    // stream offset behind the batch's last byte
	sent    uint64    // stream offset of the next byte the socket takes
	next    int       // index in sq of the first send not completely staged
	keep    int       // finishing: how many sends are still to be sent
	msn     uint32    // of the next Send
	waits   bool      // responder: nothing may be sent yet
	late    bool      // responder: when last checked, the peer did not have the Reply
	wireAt  time.Time // responder: hold-off ends; initiator: next kick
	kicks   uint8     // kicks armed so far; kicksOver: finished
	ctl     ctl
	within  bool // the last FPDU staged was not its message's last
	sendDue bool // a Read Response was just finished: it is a send's turn

	// Our Reads: requests that are staged and not yet answered. The oldest is sq.At(oldRead),
	// unless it is the ready-to-receive Read.
	readMSN  uint32 // of the next Read Request
	readsOut int
	oldRead  int

	owed ring.Ring[readResponse] // to the peer's Reads, in order
	// a Read Response could not be finished because its memory is gone; Timeout reports it
	lost *fault
}

// readResponse is the response that a Read Request of the peer still has to get.
type readResponse struct {
	stag         uint32 // the peer's sink
	to           uint64
	source       *verbs.MR // ours; nil: the Read is empty
	offset       uint32    // in source
	size, staged uint32
}

// dropStaged discards staged FPDUs and owed responses, except raw. It does not change the work
// requests.
func (t *tx) dropStaged() {
	t.batch.release()
	t.batch, t.ctl, t.owed, t.lost, t.wireAt = nil, 0, ring.Ring[readResponse]{}, nil, time.Time{}
}

// partialFPDU returns a copy of the bytes that must still be sent before the stream is at the start
// of an FPDU again.
func (t *tx) partialFPDU() []byte {
	if t.raw != nil {
		return append([]byte(nil), t.raw...)
	}
	if t.batch == nil {
		return nil
	}
	return t.batch.copyHead(t.batch.nextBoundary(t.sent) - t.sent)
}
