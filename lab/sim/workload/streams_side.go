package workload

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/rdmanet"
)

// stream is a stream.
type stream struct {
	w      *streams
	n      int // number of its operation
	o      *streamOp
	name   string
	begun  bool
	killed bool // one of its processes was killed
	sides  [2]side
}

var sideNames = [...]string{"the side that has dialled", "the other side"}

// side is one end of it.
type side struct {
	x     *stream
	n     int
	o     *sideOp
	p     *world.Process
	c     *rdmanet.Conn
	out   *oracle.Pipe // written bytes
	since time.Duration

	writing  int  // goroutines
	reading  bool // a goroutine reads
	shut     bool // CloseWrite
	deaf     bool // CloseRead
	closed   bool // Close
	closedAt time.Duration
	resetAt  time.Duration // when it saw a reset; 0: never
	readAt   time.Duration // time of the last read
	late     int           // Writes that started after the peer's Close, and succeeded
}

// isOpened reports whether both sides have it.
func (x *stream) isOpened() bool { return x.sides[0].c != nil && x.sides[1].c != nil }

// isOrderly reports whether both sides end it in order.
func (x *stream) isOrderly() bool {
	return x.o.sides[0].end == endsBoth && x.o.sides[1].end == endsBoth
}

// isExcused reports whether a fault may have hit it.
func (x *stream) isExcused() bool {
	return x.killed || x.w.Disturbed(0, x.o.machine) || x.w.closes > 0 && !x.isOpened()
}

// hasLingered reports whether a side has closed, and has waited in vain for the other to take
// everything.
func (x *stream) hasLingered() bool {
	for i := range x.sides {
		if s := &x.sides[i]; s.otherSide().resetAt >= s.closedAt+cmp.Or(x.w.cfg.Linger, 30*time.Second) {
			return true
		}
	}
	return false
}

// otherSide returns the other end.
func (s *side) otherSide() *side { return &s.x.sides[1-s.n] }

// startSide starts the activities of a side.
func (x *stream) startSide(me *crew, n int, c *rdmanet.Conn) {
	s := &x.sides[n]
	s.c, s.p, s.since = c, me.p, x.w.World.Now()
	for range s.o.writers {
		s.writing++
		me.startGoroutine(func() {
			s.doWrites()
			s.writing--
		})
	}
	if !s.o.never {
		s.reading = true
		me.startGoroutine(func() {
			s.readToEnd()
			s.reading = false
		})
	}
	me.startGoroutine(func() { s.closeSide(me) })
}

// closeSide ends the side.
func (s *side) closeSide(me *crew) {
	w := s.x.w
	written := func() bool { return s.writing == 0 }
	switch s.o.end {
	case endsBoth:
		me.waitUntil(10*time.Millisecond, written)
		s.closeWrite()
		me.waitUntil(10*time.Millisecond, func() bool { return !s.reading })
	case endsRead:
		me.p.Sleep(s.o.after)
		s.deaf = true
		_ = s.c.CloseRead()
		me.waitUntil(10*time.Millisecond, written)
		s.closeWrite()
		me.p.Sleep(100 * time.Millisecond)
	case endsAfter:
		me.waitUntil(10*time.Millisecond, written)
	case endsLinger:
		me.p.Sleep(s.o.after)
		_ = s.c.SetLinger(0)
	default:
		me.p.Sleep(s.o.after)
	}
	s.closed, s.closedAt = true, w.World.Now()
	s.out.Close()
	err := s.c.Close()
	w.World.Trace("%s: stream %d: %s closes", w.Name, s.x.n, sideNames[s.n])
	if err != nil {
		w.failWorld("%s: Close: %v", s.x.name, err)
	}
	me.waitUntil(10*time.Millisecond, func() bool { return s.writing == 0 && !s.reading })
	if took := w.World.Now() - s.closedAt; took > time.Second && !w.Disturbed(0, s.x.o.machine) {
		w.failWorld("%s: what blocked returns %v after Close", s.x.name, took)
	}
	if s.x.o.innocent && !s.x.isExcused() && w.World.Now()-s.since > 5*time.Second {
		w.failWorld("%s behaves, and takes %v", s.x.name, w.World.Now()-s.since)
	}
}

func (s *side) closeWrite() {
	s.out.Close()
	s.shut = true
	if err := s.c.CloseWrite(); err != nil {
		s.judgeError("CloseWrite", err)
	}
}

// doWrites performs the writes of one goroutine.
func (s *side) doWrites() {
	w, p := s.x.w, s.out.Writer()
	for range s.o.writes {
		if s.o.pause > 0 {
			s.p.Sleep(s.o.pause)
		}
		if s.o.deadline > 0 {
			_ = s.c.SetWriteDeadline(time.Now().Add(s.o.deadline))
		}
		begin := w.World.Now()
		x, b := p.Writing(s.o.size)
		n, err := s.c.Write(b)
		x.Written(w.World.Now(), n)
		if err == nil && n < len(b) {
			w.failWorld("%s: Write has taken %d of %d bytes without an error", s.x.name, n, len(b))
		}
		s.judgeSwallowed(begin, err)
		if err != nil && !s.judgeError("Write", err) {
			return
		}
	}
}

// iwarpLingers is how long a socket of the embedded device still accepts data after a reset of its
// connection (iwarp.Config). The peer reads the reset after all data that it has not read so far.
const iwarpLingers = 5 * time.Second

// iwarpWaits is how long messages wait on the embedded device that arrived before the loss of their
// connection (iwarp.Config.UserTimeout). Its owner reads the loss after them.
const iwarpWaits = 30 * time.Second

// judgeSwallowed judges a Write to a side that has closed: the writer must learn of it soon.
func (s *side) judgeSwallowed(begin time.Duration, err error) {
	w, o := s.x.w, s.otherSide()
	if !o.closed || s.x.isExcused() {
		return
	}
	now, kind := w.World.Now(), w.World.Kind()
	ended, soon, blocked := o.closedAt, time.Second, 5*time.Second
	if kind == world.Embedded {
		soon += iwarpLingers
	}
	if unread := (s.reading || s.o.never) && !s.deaf; unread && (kind == world.Embedded || kind == world.Twin) {
		ended, soon, blocked = max(ended, s.readAt), soon+iwarpWaits, blocked+iwarpWaits
	}
	if took := now - max(begin, ended); took > blocked && s.o.deadline == 0 {
		w.failWorld("%s: a Write returns %v after the peer has closed", s.x.name, took)
	}
	if err == nil && begin > ended+soon {
		if s.late++; s.late > 2 {
			w.failWorld("%s: %d Writes succeed that have begun more than %v after the peer's Close at %v", s.x.name, s.late, soon, o.closedAt)
		}
	}
}

// readToEnd reads until the end.
func (s *side) readToEnd() {
	w, in := s.x.w, s.otherSide().out
	b := make([]byte, s.o.buffer)
	deadline := s.o.deadline
	for turn := 0; ; turn++ {
		if s.o.wait > 0 {
			s.p.Sleep(s.o.wait)
		}
		if deadline > 0 {
			_ = s.c.SetReadDeadline(time.Now().Add(deadline))
		}
		var err error
		if s.o.writeTo && turn%2 == 0 {
			_, err = s.c.WriteTo(&taker{s: s, left: s.o.buffer})
			if err == nil {
				err = io.EOF
			} else if errors.Is(err, errTaken) {
				err = nil
			}
		} else {
			var n int
			n, err = s.c.Read(b)
			in.Read(w.World.Now(), b[:n])
		}
		s.readAt = w.World.Now()
		if errors.Is(err, os.ErrDeadlineExceeded) { // a slow stream takes minutes
			deadline = min(2*deadline, max(s.o.deadline, longestTry))
		} else {
			deadline = s.o.deadline
		}
		switch {
		case errors.Is(err, io.EOF):
			if !s.deaf {
				in.EOF(w.World.Now())
			}
			return
		case err != nil && !s.judgeError("Read", err):
			return
		}
	}
}

// longestTry limits the deadline of Reads that are repeated because no data arrives.
const longestTry = time.Second

// errTaken is returned by a taker that has enough.
var errTaken = errors.New("enough")

// taker is a Writer that takes so many bytes.
type taker struct {
	s    *side
	left int
}

// Write implements io.Writer.
func (t *taker) Write(b []byte) (int, error) {
	n := min(len(b), t.left)
	t.s.otherSide().out.Read(t.s.x.w.World.Now(), b[:n])
	if t.left -= n; t.left == 0 {
		return n, errTaken
	}
	return n, nil
}

// judgeError judges an error, and reports whether the caller should try again.
func (s *side) judgeError(what string, err error) (again bool) {
	w, o := s.x.w, s.otherSide()
	// in whatever way: bytes may cross a Close
	ended := s.x.isExcused() || s.closed || o.closed || s.deaf && s.shut || o.deaf && o.shut
	fine := false
	errno, numbered := errors.AsType[unix.Errno](err)
	_, op := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, net.ErrClosed):
		fine = s.closed
	case errors.Is(err, os.ErrDeadlineExceeded):
		fine, again = s.o.deadline > 0, true
	case errno == unix.EPIPE:
		fine = ended || s.shut
	case errno == unix.ECONNRESET:
		fine, s.resetAt = ended, w.World.Now()
	}
	text := "no errno"
	if numbered {
		text = errno.Error()
	}
	w.World.Trace("%s: stream %d: %s: %s: %s", w.Name, s.x.n, sideNames[s.n], what, text)
	if !fine || !op {
		w.failWorld("%s: %s: %s: %v, and nothing has happened to it", s.x.name, sideNames[s.n], what, err)
	}
	return again
}
