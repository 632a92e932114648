package rdmanet

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	// blockSize is how many bytes of small unread messages a connection gathers. Each message
	// arrives in a buffer of the largest message's size. Its buffer and its credit are returned
	// immediately, on the loop.
	blockSize = 16 << 10
	// smallMax is the size of the largest message that is gathered. Copying one of twice the size
	// costs more than returning its buffer later, for which the reader's goroutine has to wake the
	// loop.
	smallMax = 4 << 10
)

// block is memory for small messages. An idle connection has none.
type block [blockSize]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

// reader is the receiving half of a connection. Unread bytes are small messages in a block,
// followed by messages that are kept in their buffers.
type reader struct {
	waiter

	small    *block // nil: none
	from, to int    // unread part of small

	retained []*rdma.Received
	at       int  // bytes read of retained[0]
	using    int  // oldest bytes that a caller is reading without the lock
	finned   bool // the peer has sent its FIN
	shut     bool // CloseRead
}

// errUnwanted is storeMessage's error for bytes that will not be read.
var errUnwanted = errors.New("the reading side is closed")

// storeMessage stores a message of the peer's. It is called on the loop. The error is errUnwanted,
// or why the connection must end.
func (r *reader) storeMessage(m *rdma.Received) (woke bool, err error) {
	n := len(m.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil: // bytes before this message are missing
		return false, nil
	case r.finned:
		return false, violationError("the peer has sent something behind its FIN")
	case n == 0:
		r.finned = true
	case r.closed || r.shut:
		return false, errUnwanted
	case len(r.retained) == 0 && n <= smallMax && r.fitsLocked(n):
		r.to += copy(r.small[r.to:], m.Data)
	default:
		r.retained = append(r.retained, m.Retain())
	}
	return r.signalLocked(), nil
}

// fitsLocked makes room for n bytes in the block. It reports whether they fit.
func (r *reader) fitsLocked(n int) bool {
	if r.small == nil {
		r.small, r.from, r.to = blocks.Get().(*block), 0, 0
	}
	if r.to+n > len(r.small) && r.from > 0 && r.using == 0 {
		r.to = copy(r.small[:], r.small[r.from:r.to])
		r.from = 0
	}
	return r.to+n <= len(r.small)
}

// unreadLocked reports whether there are bytes that were not read and are not in use.
func (r *reader) unreadLocked() bool {
	if r.small != nil {
		return r.to-r.from > r.using || len(r.retained) > 0
	}
	return len(r.retained) > 1 || len(r.retained) == 1 && len(r.retained[0].Data)-r.at > r.using
}

// discardLocked releases the memory of unread bytes. If the oldest are in use, their user releases
// it later.
func (r *reader) discardLocked() {
	keep := 0
	switch {
	case r.using > 0 && r.small == nil:
		keep = 1
	case r.using == 0 && r.small != nil:
		blocks.Put(r.small)
		r.small = nil
	}
	for i := keep; i < len(r.retained); i++ {
		r.retained[i].Release()
		r.retained[i] = nil
	}
	r.retained = r.retained[:min(keep, len(r.retained))]
}

// readyLocked waits until there is something to read, an end or an error.
func (r *reader) readyLocked() error {
	for {
		switch {
		case r.closed:
			return net.ErrClosed
		case r.expired:
			return os.ErrDeadlineExceeded
		case r.shut:
			return io.EOF
		case r.small != nil && r.to > r.from || len(r.retained) > 0:
			return nil
		case r.finned:
			return io.EOF
		case r.err != nil:
			return r.err
		}
		if err := r.waitLocked(); err != nil {
			return err
		}
	}
}

// read copies available bytes to p.
func (r *reader) read(p []byte) (n int, err error) {
	r.turn.Lock(r.rt.Scheduler())
	defer r.turn.Unlock(r.rt.Scheduler())
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(p) == 0 && !r.closed && !r.expired {
		return 0, nil
	}
	if err := r.readyLocked(); err != nil {
		return 0, err
	}
	if r.small == nil {
		n = copy(p, r.borrowLocked(len(p)))
		r.giveBack(n)
		return n, nil
	}
	n = copy(p, r.small[r.from:r.to]) // few enough for the loop to wait
	r.tookLocked(n)
	return n, nil
}

// borrowLocked returns the oldest unread bytes, at most most. It unlocks mu, and giveBack locks it
// again, so that the loop need not wait for the user of the bytes. Until then they do not move.
func (r *reader) borrowLocked(most int) []byte {
	var rest []byte
	if r.small != nil {
		rest = r.small[r.from:r.to]
	} else {
		rest = r.retained[0].Data[r.at:]
	}
	rest = rest[:min(most, len(rest))]
	r.using = len(rest)
	r.mu.Unlock()
	return rest
}

// giveBack ends the use that borrowLocked has begun, with n bytes read. It releases their memory if
// it contains no unread bytes.
func (r *reader) giveBack(n int) {
	r.mu.Lock()
	r.using = 0
	if r.small != nil {
		r.tookLocked(n)
		return
	}
	over := r.closed || r.shut
	r.at += n
	m := r.retained[0]
	if r.at < len(m.Data) && !over {
		return
	}
	last := copy(r.retained, r.retained[1:])
	r.retained[last] = nil
	r.retained, r.at = r.retained[:last], 0
	r.mu.Unlock()
	m.Release()
	r.mu.Lock()
}

// tookLocked records that n bytes of the block were read.
func (r *reader) tookLocked(n int) {
	if r.from += n; r.from == r.to || r.closed || r.shut {
		blocks.Put(r.small)
		r.small = nil
	}
}

// writeTo writes all bytes to w, directly from their buffers. readErr is the stream's error, err is
// w's.
func (r *reader) writeTo(w io.Writer) (n int64, readErr, err error) {
	r.turn.Lock(r.rt.Scheduler())
	defer r.turn.Unlock(r.rt.Scheduler())
	r.mu.Lock()
	defer r.mu.Unlock()
	for err == nil {
		if readErr = r.readyLocked(); readErr != nil {
			return n, readErr, nil
		}
		var k int
		k, err = r.passLocked(w)
		n += int64(k)
	}
	return n, nil, err
}

// passLocked writes the oldest bytes to w. Those that w does not take stay the oldest, even if w
// panics.
func (r *reader) passLocked(w io.Writer) (n int, err error) {
	rest := r.borrowLocked(math.MaxInt)
	defer func() { r.giveBack(n) }()
	return writeChecked(w, rest)
}

// errWriter is the error for a Writer that returns an impossible count.
var errWriter = errors.New("rdmanet: WriteTo's Writer has returned an impossible count of bytes")

// writeChecked calls w.Write, and returns an error if that reports too small a count without one,
// or an impossible count.
func writeChecked(w io.Writer, p []byte) (n int, err error) {
	n, err = w.Write(p)
	switch {
	case n < 0 || n > len(p):
		return 0, errWriter
	case n < len(p) && err == nil:
		err = io.ErrShortWrite
	}
	return n, err
}
