package rpc

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/inflight"
	"github.com/rdmactor/rdmactor/rpc/internal/share"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// gatherBytes limits a gathered message: frames that callers and handlers queue while the loop is
// busy are sent together. A larger frame is sent as a separate message.
const gatherBytes = 16 << 10

// gatherings have the memory of gathered messages of busy connections.
var gatherings = sync.Pool{New: func() any { return new([gatherBytes]byte) }}

// ahead limits the messages handed to the connection that the device has not taken yet. It is less
// than the size of any send queue (Limits.SendQueue: 256).
var ahead = inflight.Limits{
	Most: inflight.Amount{Messages: 64, Bytes: 4 << 20},
	Part: inflight.Amount{Messages: 32, Bytes: 1 << 20},
}

// out is the outgoing half of a connection. Any goroutine puts frames into it, and the connection's
// owner sends them on its loop: those that are queued together as one message. While the connection
// is busy, frames wait here, and are gathered into fewer messages.
type out struct {
	sys *actor.ActorSystem
	pid *actor.PID // owner

	// nil at a server. trim returns the part of the next message that is still to be sent, and
	// notes the message's number. mu is locked then. trimLate returns that part of a message that
	// waited in the connection. mu is not locked then.
	trim, trimLate func(b []byte) (rest []byte)

	mu      sync.Mutex   // also guards the connection's table of calls
	cur     []byte       // being gathered
	full    []segment    // complete messages before cur, oldest first
	bytes   int          // in cur and full
	cuts    cuts         // large frames in pieces, beside cur and full
	number  uint64       // number of the message in cur, from 1
	most    int          // bytes of a gathered message; 0: the peer's limit is not known yet
	woken   bool         // a flush is on its way, or waits for the connection
	ended   bool         // nothing more is sent
	waiters []*waiter    // wait for room
	answers atomic.Int32 // number of answers among waiters; written with mu locked
	purse   share.Purse

	handed uint64 // gathered messages handed to the connection
	pieces uint64 // pieces handed to it, which are messages, too
	// number of the last gathered message that a piece may have overtaken
	overtaken uint64

	// The loop's.
	ahead inflight.Window // part of handed that may still be in the connection
	spare []byte          // next backing array of cur
}

// highWater is how many bytes may wait for a connection. While there are more, nothing is done
// that adds to them: a server does not read further requests, and streams wait.
const highWater = 1 << 20

// segment is a message that waits: frames that were gathered, or a large frame that was encoded
// into its Send already.
type segment struct {
	frames []byte
	send   *rdma.Send
}

func (s *segment) len() int {
	if s.send != nil {
		return s.send.Len()
	}
	return len(s.frames)
}

// waiter is a stream, an answer, or a call that has not begun, which may have to wait for room.
// out.mu.
type waiter struct {
	waits bool          // listed in out.waiters
	room  chan struct{} // has a token after a change that may end the wait
}

// goOn makes the waiter check again whether there is room.
func (w *waiter) goOn() { wake(w.room) }

// wake wakes the goroutine that waits for a token of ready.
func wake(ready chan struct{}) {
	select {
	case ready <- struct{}{}:
	default:
	}
}

// wakeList are the goroutines that frames of a turn wake. They are woken after the last frame:
// before, they would compete with the loop for out.mu, and soon wait again. It belongs to the loop.
type wakeList []chan struct{}

// mostWakes bounds a wakeList: a peer may send thousands of windows in a turn.
const mostWakes = 64

// add adds a goroutine. If the list is full the goroutine is woken immediately.
func (l *wakeList) add(ready chan struct{}) {
	if len(*l) == mostWakes {
		wake(ready)
		return
	}
	*l = append(*l, ready)
}

// wakeAll wakes the goroutines, and reports whether there were any.
func (l *wakeList) wakeAll() (any bool) {
	for _, ready := range *l {
		wake(ready)
	}
	any = len(*l) > 0
	clear(*l)
	*l = (*l)[:0]
	return any
}

// flush asks an owner to send its queued frames. All share flushMsg.
type flush struct{}

var flushMsg any = &flush{}

// establishedLocked takes how large a message the peer takes.
func (o *out) establishedLocked(limit int) { o.most = min(limit, gatherBytes) }

// frameLocked makes room for a frame of n bytes, header included, and gives it to the caller to
// fill in.
func (o *out) frameLocked(n int) []byte {
	if len(o.cur) > 0 && len(o.cur)+n > o.most {
		o.closeLocked()
	}
	at := len(o.cur)
	if need := at + n; need > cap(o.cur) {
		var grown []byte
		// bytes are counted, not memory: messages that stay small get little
		switch busy := need > smallBuffer || len(o.full) > 0; {
		case !busy:
			grown = make([]byte, at, smallBuffer)
		case need > gatherBytes || o.most < gatherBytes/2:
			grown = make([]byte, at, max(need, o.most))
		default:
			grown = gatherings.Get().(*[gatherBytes]byte)[:at]
		}
		copy(grown, o.cur)
		o.cur = grown
	}
	o.cur = o.cur[:at+n]
	o.bytes += n
	return o.cur[at:]
}

// newLargeSend encodes a body into a separate message. That is done before mu is locked, so that
// other goroutines need not wait for it. nil: the body is small enough to be gathered.
func newLargeSend(metadata, body []byte) *rdma.Send {
	n := wire.RequestLen(metadata, body)
	if n <= gatherBytes {
		return nil
	}
	s := rdma.NewSendBuffer(wire.HeaderLen + n)
	p := s.Bytes()
	wire.PutRequest(p[wire.HeaderLen:], metadata, nil)
	copyLarge(p[len(p)-len(body):], body)
	return s
}

// putLocked puts a frame.
func (o *out) putLocked(h wire.Header, body []byte) { o.putLargeLocked(h, nil, nil, body) }

// putLargeLocked puts a frame. own is newLargeSend's result for metadata and body; if not nil,
// they are not used. It returns the number of the message that contains the frame.
func (o *out) putLargeLocked(h wire.Header, own *rdma.Send, metadata, body []byte) (number uint64) {
	if own == nil {
		h.Length = uint32(wire.RequestLen(metadata, body))
		p := o.frameLocked(wire.HeaderLen + int(h.Length))
		h.Put(p)
		wire.PutRequest(p[wire.HeaderLen:], metadata, body)
		return o.number
	}
	h.Length = uint32(own.Len() - wire.HeaderLen)
	h.Put(own.Bytes())
	if len(o.cur) > 0 {
		o.closeLocked()
	}
	o.full = append(o.full, segment{send: own})
	o.bytes += own.Len()
	o.number++
	return o.number - 1
}

// closeLocked ends the message that is being gathered.
func (o *out) closeLocked() {
	o.full = append(o.full, segment{frames: o.cur})
	o.cur = nil
	o.number++
}

// popLocked takes the oldest message, or a piece. The loop's.
func (o *out) popLocked() (seg segment, ok bool) {
	if seg, ok = o.popPieceLocked(); ok {
		o.settleLocked()
		return seg, true
	}
	switch {
	case len(o.full) > 0:
		seg = o.full[0]
		o.full[0] = segment{}
		if o.full = o.full[1:]; len(o.full) == 0 {
			o.full = nil
		}
	case len(o.cur) > 0:
		seg.frames = o.cur
		o.cur, o.spare = o.spare, nil
		o.number++
	default:
		return seg, false
	}
	o.handed++
	o.bytes -= seg.len()
	o.settleLocked()
	if len(o.waiters) > 0 && o.bytes <= highWater/2 {
		o.releaseLocked()
	}
	return seg, true
}

// awaitLocked makes w go on when there is room again.
func (o *out) awaitLocked(w *waiter) {
	if !w.waits {
		w.waits = true
		o.waiters = append(o.waiters, w)
	}
}

// releaseLocked lets those go on that wait for room.
func (o *out) releaseLocked() {
	for _, w := range o.waiters {
		w.waits = false
		w.goOn()
	}
	clear(o.waiters)
	o.waiters = o.waiters[:0]
}

// wakeLocked reports whether the caller has to request a flush, after it has unlocked mu.
func (o *out) wakeLocked() bool {
	if o.woken || o.ended {
		return false
	}
	o.woken = true
	return true
}

// unlockAndWake unlocks mu, and asks the owner to send the queued frames.
func (o *out) unlockAndWake() {
	wake := o.wakeLocked()
	o.mu.Unlock()
	if wake {
		o.requestFlush()
	}
}

// requestFlush asks the owner to send the queued frames. Any goroutine may call it.
func (o *out) requestFlush() { o.sys.Root.Send(o.pid, flushMsg) }

// sendQueued hands as many queued messages to the connection as it has room for. It is called on
// the loop.
func (o *out) sendQueued(ctx actor.Context, id *actor.PID) {
	for !o.ahead.Full() {
		o.mu.Lock()
		seg, ok := o.popLocked()
		if !ok || o.ended {
			o.woken = false
			o.mu.Unlock()
			return
		}
		if o.trim != nil {
			o.trimSegmentLocked(&seg)
		}
		o.mu.Unlock()
		s := seg.send
		if s == nil {
			s = rdma.NewSend(seg.frames)
			switch n := cap(seg.frames); {
			case o.spare == nil && n <= keepBuffer:
				o.spare = seg.frames[:0]
			case n == gatherBytes:
				gatherings.Put((*[gatherBytes]byte)(seg.frames[:n]))
			}
		}
		s.Renew = o.trimLate
		s.Notify = o.ahead.Add(seg.len())
		ctx.Send(id, s)
	}
	// woken stays true: frames that are queued until the next Sent are sent then.
}

// trimSegmentLocked removes the frames from the next message that need not be sent.
func (o *out) trimSegmentLocked(seg *segment) {
	if seg.send == nil {
		seg.frames = o.trim(seg.frames)
		return
	}
	p := seg.send.Bytes()
	if rest := o.trim(p); len(rest) < len(p) { // the rest is copied: the whole need not wait
		whole := seg.send
		seg.send = rdma.NewSend(rest)
		whole.Release()
	}
}

// dropUnsent drops unsent frames, and all that are queued later, and returns the number of gathered
// messages that were handed over.
func (o *out) dropUnsent() (handed uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.cur, o.full, o.bytes = nil, nil, 0
	o.cuts.endLocked()
	o.releaseLocked()
	o.settleLocked()
	return o.handed
}

// A server keeps requests until they are answered, and answers and items until the connection takes
// them, in memory that its clients share (share.Purse).
//
//   - A request without memory is refused: ErrOverloaded.
//   - If a client does not take its answers, its further requests are not read, and it gets no
//     credit for them.
//   - Items wait, and so do answers: each with its goroutine, and with the call's place, whose
//     number is bounded. While an answer waits, no further call of its connection begins
//     (checkBegin), so that only the answers of handlers that already run can join it.
//
// However much other connections use, share.OwnMemory bytes and one answer or item can be queued on
// every connection: a client that reads its answers gets all of them.

// mayLocked reports whether n more bytes may be kept.
func (o *out) mayLocked(n int) bool { return o.purse.May(o.totalLocked(), n) }

// roomLocked reports whether n more bytes may wait for the connection.
func (o *out) roomLocked(n int) bool { return o.totalLocked() <= share.OwnMemory || o.mayLocked(n) }

// totalLocked returns how many bytes wait for the connection.
func (o *out) totalLocked() int { return o.bytes + o.cuts.bytes }

// settleLocked returns memory that is not needed.
func (o *out) settleLocked() { o.purse.Settle(o.totalLocked()) }

// lostFrames reports whether frames were lost on a connection that would go on without them. Such a
// connection has to be closed. Every other failure of a Send ends the connection.
func lostFrames(m *rdma.SendFailed) bool {
	return !errors.Is(m, rdma.ErrFlushed) && !errors.Is(m, unix.ENOTCONN)
}
