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
	// blockSize is how many bytes of small messages that nobody has read a connection gathers.
	// Each message has come in a buffer that would hold the largest one. Its buffer and its credit
	// are given back at once, on the loop.
	blockSize = 16 << 10
	// smallMax is the size of the largest message that is gathered. To copy one of twice the size
	// costs more than to give its buffer back later, for which the reader's goroutine has to wake
	// the loop.
	smallMax = 4 << 10
)

// block is memory for small messages. An idle connection has none.
type block [blockSize]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

// reader is the receiving half of a connection. What was not read is small messages in a block,
// and after them messages that are kept as they came.
type reader struct {
	waiter

	small    *block // nil: none
	from, to int    // of small: what was not read

	retained []*rdma.Received
	at       int  // of retained[0]: what was read
	using    int  // of the oldest bytes: what somebody reads without the lock
	finned   bool // the peer has sent its FIN
	shut     bool // CloseRead
}

// errUnwanted is take's error for bytes that nobody will read.
var errUnwanted = errors.New("the reading side is closed")

// take takes a message of the peer's. It is called on the loop. The error is errUnwanted, or says
// why the connection must end.
func (r *reader) take(m *rdma.Received) (woke bool, err error) {
	n := len(m.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil: // what comes now would be behind a hole
		return false, nil
	case r.finned:
		return false, violation("the peer has sent something behind its FIN")
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

// fitsLocked makes room for n bytes in the block, if there is.
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

// unreadLocked reports whether there are bytes that nobody has read and nobody is using.
func (r *reader) unreadLocked() bool {
	if r.small != nil {
		return r.to-r.from > r.using || len(r.retained) > 0
	}
	return len(r.retained) > 1 || len(r.retained) == 1 && len(r.retained[0].Data)-r.at > r.using
}

// discardLocked gives back the memory of what was not read. If the oldest is in use, its user
// gives that back later.
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

// read copies what is there to p.
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
	n = copy(p, r.small[r.from:r.to]) // so little that the loop can wait for it
	r.tookLocked(n)
	return n, nil
}

// borrowLocked returns the oldest bytes that were not read, at most so many. It unlocks mu, and
// giveBack locks it again, so that the loop need not wait for the user of the bytes. Nobody moves
// them meanwhile.
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

// giveBack ends what borrowLocked has begun, with n bytes read. It gives their memory back if
// nothing else in it is to be read.
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

// tookLocked notes that n bytes of the block were read.
func (r *reader) tookLocked(n int) {
	if r.from += n; r.from == r.to || r.closed || r.shut {
		blocks.Put(r.small)
		r.small = nil
	}
}

// writeTo writes everything to w, directly from where it lies. readErr is the stream's error, err
// is w's.
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

// passLocked writes what is oldest to w. What w does not take stays the oldest, also when w panics.
func (r *reader) passLocked(w io.Writer) (n int, err error) {
	rest := r.borrowLocked(math.MaxInt)
	defer func() { r.giveBack(n) }()
	return write(w, rest)
}

// errWriter is the error for a Writer that returns an impossible count.
var errWriter = errors.New("rdmanet: WriteTo's Writer has returned an impossible count of bytes")

// write is w.Write, with an error for a Writer that returns too small a count without one, or an
// impossible one.
func write(w io.Writer, p []byte) (n int, err error) {
	n, err = w.Write(p)
	switch {
	case n < 0 || n > len(p):
		return 0, errWriter
	case n < len(p) && err == nil:
		err = io.ErrShortWrite
	}
	return n, err
}
