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

func (x *slotsConn) opened() bool { return x.sides[0].c != nil && x.sides[1].c != nil }

// excused reports whether it may end before everything was received.
func (x *slotsConn) excused() bool {
	return x.killed || x.o.sides[0].close > 0 || x.o.sides[1].close > 0 || x.w.Disturbed(0, x.o.machine)
}

// dial is the program of a machine that dials.
func (w *slotsWork) dial(p *world.Process, machine int) {
	if w.left[machine] {
		return
	}
	rt := w.open(p)
	if rt == nil {
		return
	}
	me := &crew{p: p}
	for _, x := range w.all {
		if x.o.machine != machine || x.begun {
			continue
		}
		me.run(func() {
			p.Sleep(beginning + x.o.at - w.World.Now())
			x.begun = true
			if c := w.connect(p, rt, x); c != nil {
				x.sides[0].begin(me, c)
			}
		})
	}
	me.until(20*time.Millisecond, me.idle)
	w.settle(p, rt)
	w.left[machine] = true
}

// connect dials, and sends the connection's number. nil: it has failed.
func (w *slotsWork) connect(p *world.Process, rt *rdma.Runtime, x *slotsConn) *slots.Conn {
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
				w.fail("connection %d is secured, and one-sided operations are not allowed: it has slots", x.n)
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

// serve is the program that listens.
func (w *slotsWork) serve(p *world.Process) {
	if w.left[0] {
		return
	}
	rt := w.open(p)
	if rt == nil {
		return
	}
	me := &crew{p: p}
	for !w.gone() {
		l, err := slots.Listen(p.Context(), rt, w.Addr(0, 0), w.cfg)
		if err != nil {
			p.Sleep(50 * time.Millisecond)
			continue
		}
		over := false
		me.run(func() {
			w.accept(me, l)
			over = true
		})
		me.until(25*time.Millisecond, func() bool { return over || w.gone() })
		_ = l.Close()
		me.until(time.Millisecond, func() bool { return over })
	}
	me.until(20*time.Millisecond, me.idle)
	w.settle(p, rt)
	w.left[0] = true
}

// accept accepts connections until the listener has ended.
func (w *slotsWork) accept(me *crew, l *slots.Listener) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			if !errors.Is(err, slots.ErrClosed) && !w.Disturbed(0) {
				w.fail("Accept: %v", err)
			}
			return
		}
		me.run(func() { w.greet(me, c) })
	}
}

// greet receives the number of a connection.
func (w *slotsWork) greet(me *crew, c *slots.Conn) {
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
		w.fail("a connection begins with number %d, which no program has sent, or has sent before", n)
		_ = c.Close()
		return
	}
	w.all[n].sides[1].begin(me, c)
}

// begin starts the activities of a side.
func (s *slotsSide) begin(me *crew, c *slots.Conn) {
	s.p, s.c = me.p, c
	s.x.w.World.Trace("%s: connection %d: %s has it", s.x.w.Name, s.x.n, sideNames[s.n])
	var done [2]bool
	me.run(func() {
		s.send()
		done[0] = true
	})
	me.run(func() {
		s.receive()
		done[1] = true
	})
	me.run(func() {
		if s.o.close > 0 {
			me.p.Sleep(s.o.close)
		} else {
			me.until(10*time.Millisecond, func() bool { return done[0] && done[1] })
		}
		s.out.Close()
		if err := c.Close(); err != nil {
			s.x.w.fail("connection %d: Close: %v", s.x.n, err)
		}
	})
}

// send sends everything, followed by the end.
func (s *slotsSide) send() {
	w, writer := s.x.w, s.out.Writer()
	for i := range s.o.n {
		if s.o.unsent > 0 && i%s.o.unsent == 0 {
			r, err := s.c.Reserve(context.Background())
			if s.failed("Reserve", err) {
				return
			}
			r.Release()
		}
		r, err := s.c.Reserve(context.Background())
		if s.failed("Reserve", err) {
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
		if s.failed("Send", err) {
			return
		}
	}
	s.sent = true
	s.reserveAll()
	s.out.Close()
	s.failed("End", s.c.End())
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
		if s.failed(fmt.Sprintf("Reserve of slot %d of %d at a quiet moment", len(all)+1, n), err) {
			break
		}
		for _, other := range all {
			if &other.Bytes()[0] == &r.Bytes()[0] {
				s.x.w.fail("connection %d: %s has reserved a slot twice", s.x.n, sideNames[s.n])
			}
		}
		all = append(all, r)
	}
	for _, r := range all {
		r.Release()
	}
}

// receive receives everything to the end.
func (s *slotsSide) receive() {
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
		if s.failed("Receive", err) {
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

// failed judges an error. It reports whether there is one.
func (s *slotsSide) failed(what string, err error) bool {
	if err == nil {
		return false
	}
	if !s.x.excused() || !errors.Is(err, slots.ErrClosed) && !errors.Is(err, unix.ECONNRESET) &&
		!errors.Is(err, slots.ErrEnded) && !errors.Is(err, context.DeadlineExceeded) {
		s.x.w.fail("connection %d: %s: %s: %v", s.x.n, sideNames[s.n], what, err)
	}
	return true
}
