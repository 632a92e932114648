package rdmanet

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/inflight"
)

// limits bounds how much a connection may have sent that the device has not completed. A Write that
// would exceed Most blocks. Each Part asks the device for a notice of its completion.
var limits = inflight.Limits{
	Most: inflight.Amount{Messages: 64, Bytes: 512 << 10},
	Part: inflight.Amount{Messages: 16, Bytes: 128 << 10},
}

// pieceMax is the size of the largest message that Write sends. With its header it fills a buffer
// of 64 KiB.
const pieceMax = 64<<10 - 8

// writer is the sending half of a connection.
type writer struct {
	waiter

	id    *actor.PID
	piece int // size of the largest message that the peer takes and this side sends

	inFlight inflight.Window

	linger    time.Duration // of Close; 0: Close resets
	byDefault time.Duration

	fin bool // sent, or never to be sent
	cut bool // the identifier is being destroyed
}

// usableLocked waits until a message may be sent, or returns why none can be sent. If nothing is
// set, there is no message, and it does not wait for room.
func (w *writer) usableLocked(nothing bool) error {
	for {
		switch {
		case w.closed:
			return net.ErrClosed
		case w.expired:
			return os.ErrDeadlineExceeded
		case w.err != nil:
			return w.err
		case w.fin:
			return brokenPipeError(errors.New("CloseWrite was called"))
		case nothing || !w.inFlight.Full():
			return nil
		}
		if err := w.waitLocked(); err != nil {
			return err
		}
	}
}

// write sends p in pieces. n is the number of bytes queued, even if there is an error.
func (w *writer) write(p []byte) (n int, err error) {
	w.turn.Lock(w.rt.Scheduler())
	defer w.turn.Unlock(w.rt.Scheduler())
	for {
		k := min(len(p)-n, w.piece)
		var s *rdma.Send
		if k > 0 {
			// copied before the lock is taken, so that the loop need not wait
			s = rdma.NewSend(p[n : n+k])
		}
		if err := w.sendMessage(s); err != nil {
			return n, err
		}
		if n += k; n == len(p) {
			return n, nil
		}
	}
}

// sendMessage waits for room, and sends one message. If s is nil it only checks for an error.
func (w *writer) sendMessage(s *rdma.Send) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usableLocked(s == nil); err != nil || s == nil {
		return err
	}
	s.Notify = w.inFlight.Add(s.Len())
	w.rt.System().Root.Send(w.id, s)
	return nil
}

// handleSent handles a notice that the device has completed messages. It is called on the loop.
func (w *writer) handleSent() (woke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// false: the notice is of the FIN, or of a connection that has ended
	return w.inFlight.Noticed() && !w.inFlight.Full() && w.signalLocked()
}

// finishLocked sends the FIN, an empty message, once. It need not wait for room: the send queue
// has room for one message beyond the limits.
func (w *writer) finishLocked() {
	if !w.fin && !w.endedLocked() {
		w.rt.System().Root.Send(w.id, rdma.NewSend(nil))
	}
	w.fin = true
	w.signalLocked()
}

// resetLocked destroys the identifier, once, which resets the connection.
func (w *writer) resetLocked() {
	if !w.endedLocked() {
		w.rt.System().Root.Send(w.id, &rdma.DestroyID{})
	}
	w.cut = true
}

// endedLocked reports whether the identifier no longer takes messages.
func (w *writer) endedLocked() bool { return w.cut || w.err != nil }
