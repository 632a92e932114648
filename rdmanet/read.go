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
	// blockSize is what a connection gathers of small messages that nobody has read. Their
	// buffers, of the largest message's size each, and their credits go back at once, on the loop.
	blockSize = 16 << 10
	// smallMax is how large a message may be to be gathered. Copying twice as much costs more than
	// giving its buffer back from the reader's goroutine, which has to wake the loop for it.
	smallMax = 4 << 10
)

// block is memory for small messages. An idle connection has none.
type block [blockSize]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

// reader is the receiving half of a connection: small messages in a block, and behind them
// messages that are kept as they came.
type reader struct {
	waiter

	small    *block // nil: none
	from, to int    // of small: what was not read

	held   []*rdma.Received
	at     int  // of held[0]: what was read
	using  int  // of the oldest bytes: what somebody reads without the lock
	finned bool // the peer has sent its FIN
	shut   bool // CloseRead
}

// errUnwanted is take's error for bytes that nobody will read.
var errUnwanted = errors.New("nobody will read that")

// take has a message of the peer's. It is on the loop. The error is errUnwanted, or why the
// connection must end.
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
	case len(r.held) == 0 && n <= smallMax && r.fits(n):
		r.to += copy(r.small[r.to:], m.Data)
	default:
		r.held = append(r.held, m.Retain())
	}
	return r.signal(), nil
}

// fits makes room for n bytes in the block, if there is.
func (r *reader) fits(n int) bool {
	if r.small == nil {
		r.small, r.from, r.to = blocks.Get().(*block), 0, 0
	}
	if r.to+n > len(r.small) && r.from > 0 && r.using == 0 {
		r.to = copy(r.small[:], r.small[r.from:r.to])
		r.from = 0
	}
	return r.to+n <= len(r.small)
}

// unread reports whether there are bytes that nobody has read, or is using. The caller has mu.
func (r *reader) unread() bool {
	if r.small != nil {
		return r.to-r.from > r.using || len(r.held) > 0
	}
	return len(r.held) > 1 || len(r.held) == 1 && len(r.held[0].Data)-r.at > r.using
}

// discard gives back what was not read, but for the oldest that is in use, which its user gives
// back.
// The caller has mu.
func (r *reader) discard() {
	keep := 0
	switch {
	case r.using > 0 && r.small == nil:
		keep = 1
	case r.using == 0 && r.small != nil:
		blocks.Put(r.small)
		r.small = nil
	}
	for i := keep; i < len(r.held); i++ {
		r.held[i].Release()
		r.held[i] = nil
	}
	r.held = r.held[:min(keep, len(r.held))]
}

// ready waits until there is something to read, an end or an error. The caller has mu.
func (r *reader) ready() error {
	for {
		switch {
		case r.closed:
			return net.ErrClosed
		case r.expired:
			return os.ErrDeadlineExceeded
		case r.shut:
			return io.EOF
		case r.small != nil && r.to > r.from || len(r.held) > 0:
			return nil
		case r.finned:
			return io.EOF
		case r.err != nil:
			return r.err
		}
		if err := r.wait(); err != nil {
			return err
		}
	}
}

// read copies what is there to p.
func (r *reader) read(p []byte) (n int, err error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(p) == 0 && !r.closed && !r.expired {
		return 0, nil
	}
	if err := r.ready(); err != nil {
		return 0, err
	}
	if r.small == nil {
		n = copy(p, r.borrow(len(p)))
		r.giveBack(n)
		return n, nil
	}
	n = copy(p, r.small[r.from:r.to]) // so little that the loop can wait
	r.took(n)
	return n, nil
}

// borrow is the oldest bytes that were not read, at most so many. It gives up mu until giveBack, so
// that the loop need not wait for their user. Nobody moves them meanwhile.
func (r *reader) borrow(most int) []byte {
	var rest []byte
	if r.small != nil {
		rest = r.small[r.from:r.to]
	} else {
		rest = r.held[0].Data[r.at:]
	}
	rest = rest[:min(most, len(rest))]
	r.using = len(rest)
	r.mu.Unlock()
	return rest
}

// giveBack notes that n bytes were read, and gives the memory that they are in back when these were
// the last in it, or nobody will read the rest.
func (r *reader) giveBack(n int) {
	r.mu.Lock()
	r.using = 0
	if r.small != nil {
		r.took(n)
		return
	}
	over := r.closed || r.shut
	r.at += n
	m := r.held[0]
	if r.at < len(m.Data) && !over {
		return
	}
	last := copy(r.held, r.held[1:])
	r.held[last] = nil
	r.held, r.at = r.held[:last], 0
	r.mu.Unlock()
	m.Release()
	r.mu.Lock()
}

// took notes that n bytes of the block were read.
func (r *reader) took(n int) {
	if r.from += n; r.from == r.to || r.closed || r.shut {
		blocks.Put(r.small)
		r.small = nil
	}
}

// writeTo copies everything to w, without a buffer between. readErr is the stream's, err is w's.
func (r *reader) writeTo(w io.Writer) (n int64, readErr, err error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for err == nil {
		if readErr = r.ready(); readErr != nil {
			return n, readErr, nil
		}
		var k int
		k, err = r.pass(w)
		n += int64(k)
	}
	return n, nil, err
}

// pass writes what is oldest to w. What w does not take stays the oldest, also when w panics.
func (r *reader) pass(w io.Writer) (n int, err error) {
	rest := r.borrow(math.MaxInt)
	defer func() { r.giveBack(n) }()
	return write(w, rest)
}

// errWriter is the error of a Writer whose count cannot be.
var errWriter = errors.New("rdmanet: WriteTo's Writer says that it has taken what it was not given")

// write is w.Write, and an error for a Writer that does not say why it has not taken everything, or
// that cannot be believed.
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
