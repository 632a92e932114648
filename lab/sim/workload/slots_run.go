package workload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/slots"
)

// slotsConn is a connection.
type slotsConn struct {
	w      *slotsWork
	n      int
	o      *slotsOp
	begun  bool
	killed bool // one of its processes was killed
	sides  [2]slotsSide
}

// slotsSide is one end of it.
type slotsSide struct {
	x    *slotsConn
	n    int
	o    *slotsSideOp
	p    *world.Process
	c    *slots.Conn
	out  *oracle.Pipe // sent bytes
	sent bool         // everything was sent
}

func (x *slotsConn) isOpened() bool { return x.sides[0].c != nil && x.sides[1].c != nil }

// isExcused reports whether the connection may end before everything was received.
func (x *slotsConn) isExcused() bool {
	return x.killed || x.o.sides[0].close > 0 || x.o.sides[1].close > 0 || x.w.Disturbed(0, x.o.machine)
}

// runDialer runs the program of a machine that dials.
func (w *slotsWork) runDialer(p *world.Process, machine int) {
	if w.left[machine] {
		return
	}
	rt := w.openRuntime(p)
	if rt == nil {
		return
	}
	me := &crew{p: p}
	for _, x := range w.all {
		if x.o.machine != machine || x.begun {
			continue
		}
		me.startGoroutine(func() {
			p.Sleep(beginning + x.o.at - w.World.Now())
			x.begun = true
			if c := w.dialConn(p, rt, x); c != nil {
				x.sides[0].startSide(me, c)
			}
		})
	}
	me.waitUntil(20*time.Millisecond, me.isIdle)
	w.awaitReleased(p, rt)
	w.left[machine] = true
}

// dialConn dials, and sends the connection's number. nil: it has failed.
func (w *slotsWork) dialConn(p *world.Process, rt *rdma.Runtime, x *slotsConn) *slots.Conn {
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		c, err := slots.Dial(ctx, rt, w.Addr(0, 0), w.cfg)
		if err == nil {
			var s slots.Reserved
			if s, err = c.Reserve(ctx); err == nil {
				binary.LittleEndian.PutUint64(s.Bytes(), uint64(x.n))
				err = s.Send(greeting)
			}
			if err != nil {
				_ = c.Close()
			}
		}
		cancel()
		if s := w.Security; s.Secured() && !s.OneSided {
			if err == nil {
				w.failWorld("connection %d is secured, and one-sided operations are not allowed: it has slots", x.n)
			}
			return nil
		}
		if err == nil {
			return c
		}
		p.Sleep(100 * time.Millisecond)
	}
	return nil
}

// runListener runs the program that listens.
func (w *slotsWork) runListener(p *world.Process) {
	if w.left[0] {
		return
	}
	rt := w.openRuntime(p)
	if rt == nil {
		return
	}
	me := &crew{p: p}
	for !w.dialersDone() {
		l, err := slots.Listen(p.Context(), rt, w.Addr(0, 0), w.cfg)
		if err != nil {
			p.Sleep(50 * time.Millisecond)
			continue
		}
		over := false
		me.startGoroutine(func() {
			w.acceptConns(me, l)
			over = true
		})
		me.waitUntil(25*time.Millisecond, func() bool { return over || w.dialersDone() })
		_ = l.Close()
		me.waitUntil(time.Millisecond, func() bool { return over })
	}
	me.waitUntil(20*time.Millisecond, me.isIdle)
	w.awaitReleased(p, rt)
	w.left[0] = true
}

// acceptConns accepts connections until the listener has ended.
func (w *slotsWork) acceptConns(me *crew, l *slots.Listener) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			if !errors.Is(err, slots.ErrClosed) && !w.Disturbed(0) {
				w.failWorld("Accept: %v", err)
			}
			return
		}
		me.startGoroutine(func() { w.receiveNumber(me, c) })
	}
}

// receiveNumber receives the number of a connection.
func (w *slotsWork) receiveNumber(me *crew, c *slots.Conn) {
	r, err := c.Receive(context.Background())
	if err != nil {
		_ = c.Close()
		return
	}
	n := uint64(len(w.all))
	if len(r.Bytes()) == greeting {
		n = binary.LittleEndian.Uint64(r.Bytes())
	}
	r.Release()
	if n >= uint64(len(w.all)) || w.all[n].sides[1].c != nil {
		w.failWorld("a connection begins with number %d, which no program has sent, or has sent before", n)
		_ = c.Close()
		return
	}
	w.all[n].sides[1].startSide(me, c)
}

// startSide starts the activities of a side.
func (s *slotsSide) startSide(me *crew, c *slots.Conn) {
	s.p, s.c = me.p, c
	s.x.w.World.Trace("%s: connection %d: %s has it", s.x.w.Name, s.x.n, sideNames[s.n])
	var done [2]bool
	me.startGoroutine(func() {
		s.sendToEnd()
		done[0] = true
	})
	me.startGoroutine(func() {
		s.receiveToEnd()
		done[1] = true
	})
	me.startGoroutine(func() {
		if s.o.close > 0 {
			me.p.Sleep(s.o.close)
		} else {
			me.waitUntil(10*time.Millisecond, func() bool { return done[0] && done[1] })
		}
		s.out.Close()
		if err := c.Close(); err != nil {
			s.x.w.failWorld("connection %d: Close: %v", s.x.n, err)
		}
	})
}

// sendToEnd sends everything, followed by the end.
func (s *slotsSide) sendToEnd() {
	w, writer := s.x.w, s.out.Writer()
	for i := range s.o.n {
		if s.o.unsent > 0 && i%s.o.unsent == 0 {
			r, err := s.c.Reserve(context.Background())
			if s.judgeError("Reserve", err) {
				return
			}
			r.Release()
		}
		r, err := s.c.Reserve(context.Background())
		if s.judgeError("Reserve", err) {
			return
		}
		if s.o.pause > 0 {
			s.p.Sleep(s.o.pause)
		}
		n := 1 + (i*7919+s.x.n)%s.c.Size()
		piece, b := writer.Writing(n)
		copy(r.Bytes(), b)
		err = r.Send(n)
		if err != nil {
			n = 0
		}
		piece.Written(w.World.Now(), n)
		if s.judgeError("Send", err) {
			return
		}
	}
	s.sent = true
	s.reserveAll()
	s.out.Close()
	s.judgeError("End", s.c.End())
}

// reserveAll judges the quiet moment after everything was sent: the peer has released all slots but
// less than a quarter, which it returns with the next ones. Each of them can be reserved, once.
func (s *slotsSide) reserveAll() {
	ctx, cancel := context.WithTimeout(context.Background(), settles)
	defer cancel()
	n := s.c.Slots()
	var all []slots.Reserved
	for len(all) <= n-max(1, n/4) {
		r, err := s.c.Reserve(ctx)
		if s.judgeError(fmt.Sprintf("Reserve of slot %d of %d at a quiet moment", len(all)+1, n), err) {
			break
		}
		for _, other := range all {
			if &other.Bytes()[0] == &r.Bytes()[0] {
				s.x.w.failWorld("connection %d: %s has reserved a slot twice", s.x.n, sideNames[s.n])
			}
		}
		all = append(all, r)
	}
	for _, r := range all {
		r.Release()
	}
}

// receiveToEnd receives everything to the end.
func (s *slotsSide) receiveToEnd() {
	w, in := s.x.w, s.x.sides[1-s.n].out
	var kept []slots.Received
	defer func() {
		for _, r := range kept {
			r.Release()
		}
	}()
	for n := s.x.o.sides[1-s.n].n; ; n-- {
		if n == 0 {
			for _, r := range kept {
				r.Release()
			}
			kept = nil
		}
		r, err := s.c.Receive(context.Background())
		if errors.Is(err, io.EOF) {
			in.EOF(w.World.Now())
			return
		}
		if s.judgeError("Receive", err) {
			return
		}
		in.Read(w.World.Now(), r.Bytes())
		if kept = append(kept, r); len(kept) > min(s.o.keep, s.c.Slots()-2) {
			last := len(kept) - 1
			kept[last].Release()
			kept = kept[:last]
		}
		if s.o.wait > 0 {
			s.p.Sleep(s.o.wait)
		}
	}
}

// judgeError judges an error. It reports whether there is one.
func (s *slotsSide) judgeError(what string, err error) bool {
	if err == nil {
		return false
	}
	if !s.x.isExcused() || !errors.Is(err, slots.ErrClosed) && !errors.Is(err, unix.ECONNRESET) &&
		!errors.Is(err, slots.ErrEnded) && !errors.Is(err, context.DeadlineExceeded) {
		s.x.w.failWorld("connection %d: %s: %s: %v", s.x.n, sideNames[s.n], what, err)
	}
	return true
}
