package rdmanet

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// What a connection lets be under way that the device has not taken yet: a Write that would exceed
// it blocks. A notice that the device has taken them is asked for with every part of it.
const (
	windowMessages = 64
	windowBytes    = 512 << 10
	partMessages   = windowMessages / 4
	partBytes      = windowBytes / 4
)

// pieceMax is the largest message that Write makes. With the header before it, it fills a buffer
// of 64 KiB.
const pieceMax = 64<<10 - 8

// writer is the sending half of a connection.
type writer struct {
	waiter

	id    *actor.PID
	piece int // bytes of the largest message that the peer takes and we make

	under  amount // way: the device has not said that it has taken them
	recent amount // of these, what was sent since a notice was asked for last
	parts  [16]amount
	first  int // of parts
	asked  int // parts

	linger    time.Duration // of Close; 0: it resets
	byDefault time.Duration

	fin   bool // sent, or never to be sent
	ended bool // the identifier takes nothing more
	err   error
}

// amount is so many messages with so many bytes.
type amount struct{ messages, bytes int }

// full reports whether Write has to wait.
func (w *writer) full() bool {
	return w.under.messages >= windowMessages || w.under.bytes >= windowBytes
}

// usable waits until a message may be sent, or tells why there will be none. Nothing may always be
// sent. The caller has mu.
func (w *writer) usable(nothing bool) error {
	for {
		switch {
		case w.closed:
			return net.ErrClosed
		case w.expired:
			return os.ErrDeadlineExceeded
		case w.err != nil:
			return w.err
		case w.fin:
			return broken(errors.New("CloseWrite was called"))
		case nothing || !w.full():
			return nil
		}
		if err := w.wait(); err != nil {
			return err
		}
	}
}

// write sends p in pieces. n is what was taken, also when there is an error.
func (w *writer) write(p []byte) (n int, err error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	for {
		k := min(len(p)-n, w.piece)
		var s *rdma.Send
		if k > 0 {
			// the copying is not under the lock, for which the loop would have to wait
			s = rdma.NewSend(p[n : n+k])
		}
		if err := w.send(s); err != nil {
			return n, err
		}
		if n += k; n == len(p) {
			return n, nil
		}
	}
}

// send waits for room, and sends one message; nil is none.
func (w *writer) send(s *rdma.Send) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(s == nil); err != nil || s == nil {
		return err
	}
	w.under.add(1, s.Len())
	w.recent.add(1, s.Len())
	if w.recent.messages >= partMessages || w.recent.bytes >= partBytes {
		s.Notify = true
		w.parts[(w.first+w.asked)%len(w.parts)] = w.recent
		w.asked++
		w.recent = amount{}
	}
	w.rt.System().Root.Send(w.id, s)
	return nil
}

func (a *amount) add(messages, bytes int) {
	a.messages += messages
	a.bytes += bytes
}

// sent takes the device's notice. It is on the loop.
func (w *writer) sent() (woke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked == 0 {
		return false // of the FIN, or of a connection that has ended
	}
	part := w.parts[w.first]
	w.first = (w.first + 1) % len(w.parts)
	w.asked--
	w.under.add(-part.messages, -part.bytes)
	return !w.full() && w.signal()
}

// end says that nothing can be sent any more, and why.
func (w *writer) end(err error) (woke bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.err == nil {
		w.err = err
	}
	return w.signal()
}

// finish sends the FIN, an empty message, once. Behind the window there is room for it. The caller
// has mu.
func (w *writer) finish() {
	if !w.fin && !w.ended {
		w.rt.System().Root.Send(w.id, rdma.NewSend(nil))
	}
	w.fin = true
	w.signal()
}

// reset ends the connection, once. The caller has mu.
func (w *writer) reset() {
	if !w.ended {
		w.rt.System().Root.Send(w.id, &rdma.DestroyID{})
	}
	w.ended = true
}
